package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// check checks that the modules in a folder can be installed.
func check(ctx context.Context, out io.Writer, root, version string) error {
	version = cmp.Or(version, trialVersion)
	if err := checkVersion(version); err != nil {
		return err
	}
	t, err := readTree(root)
	if err != nil {
		return err
	}
	return checkTree(ctx, out, t, version)
}

// checkTree publishes the files of a tree to this process, and installs and uses
// them as users do.
func checkTree(ctx context.Context, out io.Writer, t *tree, version string) (err error) {
	p, err := newInstallTrial(ctx, t, version)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	for _, step := range []struct {
		name string
		do   func(context.Context, *tree) error
	}{
		{"install the programs and print their version", p.installPrograms},
		{"build and run a user's program", p.buildUser},
		{"build every module alone", p.buildModules},
	} {
		began := time.Now()
		if err := step.do(ctx, t); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Fprintf(out, "%s: %s (%.0f s)\n", version, step.name, time.Since(began).Seconds())
	}
	return nil
}

// installPrograms installs the programs by their version, outside of any module.
func (p *trial) installPrograms(ctx context.Context, _ *tree) error {
	for _, folder := range programs {
		if _, err := p.run(ctx, p.folder, "go", "install", path.Join(library, folder)+"@"+p.version); err != nil {
			return err
		}
		name := path.Base(folder)
		printed, err := p.run(ctx, p.folder, filepath.Join(p.folder, "bin", name), "version")
		if err != nil {
			return err
		}
		if words := strings.Fields(printed); len(words) < 2 || words[0] != name || words[1] != p.version {
			return fmt.Errorf("%s version prints %q; want the version %s", name, printed, p.version)
		}
	}
	return nil
}

// buildUser makes a module that requires the library, a publisher and the traces,
// and runs its program.
func (p *trial) buildUser(ctx context.Context, t *tree) error {
	const source = "lab/release/testdata/user/main.go"
	content, err := t.read(source)
	if err != nil {
		return err
	}
	folder := filepath.Join(p.folder, "user")
	if err := writeFile(filepath.Join(folder, "main.go"), content); err != nil {
		return err
	}
	get := []string{"go", "get"}
	for _, folder := range []string{".", "adapters/kafka", "adapters/tracing"} {
		get = append(get, path.Join(library, folder)+"@"+p.version)
	}
	for _, command := range [][]string{{"go", "mod", "init", "example.com/user"}, get, {"go", "mod", "tidy"}, {"go", "run", "."}} {
		if _, err := p.run(ctx, folder, command...); err != nil {
			return err
		}
	}
	return nil
}

// buildModules builds each published module without the workspace, as packagers
// do: go.mod and go.sum must be complete.
func (p *trial) buildModules(ctx context.Context, t *tree) error {
	all, err := t.modules()
	if err != nil {
		return err
	}
	for _, m := range all {
		if !m.published() {
			continue
		}
		text, err := p.run(ctx, p.folder, "go", "mod", "download", "-json", m.path+"@"+p.version)
		if err != nil {
			return err
		}
		var downloaded struct{ Dir string }
		if err := json.Unmarshal([]byte(text), &downloaded); err != nil {
			return err
		}
		if _, err := p.run(ctx, downloaded.Dir, "go", "build", "./..."); err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
	}
	return nil
}
