package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/mod/module"
)

// licenseFile is the name of a file that must be passed on with a program.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents|unlicense)`)

// licenses is the text of the licenses of all that programs contain and that is
// not ours. Most of them require it beside a program.
func (p *trial) licenses(ctx context.Context, built []program) ([]byte, error) {
	goRoot, err := p.run(ctx, p.folder, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := writeLicenses(&out, "Go's standard library "+built[0].build.GoVersion, strings.TrimSpace(goRoot)); err != nil {
		return nil, err
	}
	for _, m := range dependencies(built) {
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

// dependencies are the modules of others that programs contain, each once.
func dependencies(built []program) []*debug.Module {
	var all []*debug.Module
	for _, b := range built {
		for _, m := range b.build.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			if !ours(m.Path) && !slices.ContainsFunc(all, func(known *debug.Module) bool { return *known == *m }) {
				all = append(all, m)
			}
		}
	}
	return all
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
