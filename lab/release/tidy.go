package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// tidy checks go.mod and go.sum of all modules, or writes them. `go mod tidy`
// alone cannot: it would look for the version of the library that the modules
// require, which may be older than the folder or not published yet.
func tidy(ctx context.Context, out io.Writer, root string, write bool) (err error) {
	t, err := readTree(root)
	if err != nil {
		return err
	}
	all, err := t.modules()
	if err != nil {
		return err
	}
	p, err := newTidyTrial(ctx, t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	var untidy []string
	for _, m := range all {
		differences, err := tidyModule(ctx, t, p, m, write)
		if err != nil {
			return fmt.Errorf("%s: %w", m.folder, err)
		}
		for _, difference := range differences {
			fmt.Fprintf(out, "[%s] %s\n", m.folder, difference)
		}
		if len(differences) > 0 {
			untidy = append(untidy, m.folder)
		}
	}
	if len(untidy) > 0 && !write {
		return fmt.Errorf("not tidy: %s; run make tidy", strings.Join(untidy, ", "))
	}
	return nil
}

// tidyModule compares the files of a module with those that the go command makes
// of copies. What it requires of ours is left out: a release sets it.
func tidyModule(ctx context.Context, t *tree, p *trial, m goModule, write bool) ([]string, error) {
	folder, err := os.MkdirTemp(p.folder, "tidy-")
	if err != nil {
		return nil, err
	}
	names := []string{"go.mod", "go.sum"}
	for _, name := range names {
		content, err := t.read(m.file(name)) // with the trial's version
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return nil, err
		}
	}
	if _, err := p.run(ctx, t.path(m.folder), "go", "mod", "tidy", "-modfile="+filepath.Join(folder, "go.mod")); err != nil {
		return nil, err
	}
	var differences []string
	for _, name := range names {
		is, err := os.ReadFile(t.path(m.file(name)))
		if err != nil {
			return nil, err
		}
		should, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		if name == "go.mod" {
			should, err = withOurVersionsOf(should, is)
		} else {
			should = joinSums(append(foreignSums(should), ownSums(is)...))
		}
		if err != nil {
			return nil, err
		}
		changes := lineDifferences(name, string(is), string(should))
		differences = append(differences, changes...)
		if write && len(changes) > 0 {
			if err := os.WriteFile(t.path(m.file(name)), should, 0o644); err != nil {
				return nil, err
			}
		}
	}
	return differences, nil
}

// withOurVersionsOf gives what a go.mod requires of our modules the version that
// another go.mod has.
func withOurVersionsOf(content, other []byte) ([]byte, error) {
	file, err := modfile.Parse("go.mod", content, nil)
	if err != nil {
		return nil, err
	}
	source, err := modfile.Parse("go.mod", other, nil)
	if err != nil {
		return nil, err
	}
	for _, require := range source.Require {
		required := slices.ContainsFunc(file.Require, func(r *modfile.Require) bool { return r.Mod.Path == require.Mod.Path })
		if ours(require.Mod.Path) && required {
			if err := file.AddRequire(require.Mod.Path, require.Mod.Version); err != nil {
				return nil, err
			}
		}
	}
	return file.Format()
}

// ownSums are the lines of a go.sum that are of our modules.
func ownSums(content []byte) []string {
	var lines []string
	for line := range strings.Lines(string(content)) {
		if modulePath, _, found := strings.Cut(line, " "); found && ours(modulePath) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// lineDifferences lists the lines that one text has and the other lacks.
func lineDifferences(name, is, should string) []string {
	if is == should {
		return nil
	}
	have, want := strings.Split(is, "\n"), strings.Split(should, "\n")
	var all []string
	for _, line := range have {
		if !slices.Contains(want, line) {
			all = append(all, name+": -"+line)
		}
	}
	for _, line := range want {
		if !slices.Contains(have, line) {
			all = append(all, name+": +"+line)
		}
	}
	if all == nil {
		all = []string{name + ": the order of its lines"}
	}
	return all
}
