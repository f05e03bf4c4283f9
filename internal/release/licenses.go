package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"

	"golang.org/x/mod/module"
)

// licenseFile is the name of a file that must be passed on with a program.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents|unlicense)`)

// licenses is the text of the licenses of all that a program contains and that is
// not ours. Most of them require it beside a program.
func (p *trial) licenses(ctx context.Context, build *debug.BuildInfo) ([]byte, error) {
	goRoot, err := p.run(ctx, p.folder, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := writeLicenses(&out, "Go's standard library "+build.GoVersion, strings.TrimSpace(goRoot)); err != nil {
		return nil, err
	}
	for _, m := range build.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if ours(m.Path) {
			continue
		}
		path, err := module.EscapePath(m.Path)
		if err != nil {
			return nil, err
		}
		version, err := module.EscapeVersion(m.Version)
		if err != nil {
			return nil, err
		}
		if err := writeLicenses(&out, m.Path+" "+m.Version, filepath.Join(p.modules(), filepath.FromSlash(path+"@"+version))); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// writeLicenses writes the licenses in a folder.
func writeLicenses(out *bytes.Buffer, of, folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	found := false
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !licenseFile.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		found = true
		fmt.Fprintf(out, "==== %s: %s ====\n\n%s\n\n", of, entry.Name(), bytes.TrimSpace(text))
	}
	if !found {
		return fmt.Errorf("%s has no license in %s", of, folder)
	}
	return nil
}
