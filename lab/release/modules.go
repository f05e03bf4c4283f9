package main

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// The modules of ours that others require: the library in the repository's root, and
// what the programs share.
const (
	library = "github.com/exactly-one/tenure"
	shared  = library + "/internal/program"
)

// laboratory is the module that serves the repository alone: it gets no tag.
const laboratory = "lab"

// goModule is a module of the repository.
type goModule struct {
	folder string // relative to the root, with slashes; "." for the library
	path   string
}

func (m goModule) file(name string) string { return path.Join(m.folder, name) }

// tagName is the tag that publishes a version of the module.
func (m goModule) tagName(version string) string {
	if m.folder == "." {
		return version
	}
	return m.folder + "/" + version
}

func (m goModule) published() bool { return m.folder != laboratory }

// modules lists all modules, the library first.
func (t *tree) modules() ([]goModule, error) {
	var all []goModule
	for _, name := range t.names {
		if path.Base(name) != "go.mod" {
			continue
		}
		file, err := t.goMod(name)
		if err != nil {
			return nil, err
		}
		all = append(all, goModule{folder: path.Dir(name), path: file.Module.Mod.Path})
	}
	slices.SortFunc(all, func(a, b goModule) int { return strings.Compare(a.path, b.path) })
	if len(all) == 0 || all[0].path != library {
		return nil, fmt.Errorf("%s does not hold the module %s", t.root, library)
	}
	return all, nil
}

func (t *tree) goMod(name string) (*modfile.File, error) {
	content, err := t.read(name)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(name, content, nil)
}

// ours reports whether a module path is one of this repository.
func ours(modulePath string) bool {
	return modulePath == library || strings.HasPrefix(modulePath, library+"/")
}

// setVersion makes all modules require those of ours at a version, with their
// checksums, and the workspaces provide that version.
func (t *tree) setVersion(version string) error {
	if err := t.setWorkspaces(version); err != nil {
		return err
	}
	all, err := t.modules()
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b goModule) int { return cmp.Compare(a.depth(), b.depth()) })
	sums := map[string][]string{} // of the modules before
	for _, m := range all {
		required, err := t.setRequirements(m, version)
		if err != nil {
			return err
		}
		var lines []string
		for _, path := range required {
			lines = append(lines, sums[path]...)
		}
		if len(lines) > 0 {
			if err := t.setChecksums(m, lines); err != nil {
				return err
			}
		}
		if m.depth() < leaf {
			if sums[m.path], err = t.checksums(m, version); err != nil {
				return err
			}
		}
	}
	return nil
}

// setWorkspaces replaces the version of modules that others require by their folders in every
// go.work: without it the go command would look for the version that the other
// modules require, although the workspace has the module.
func (t *tree) setWorkspaces(version string) error {
	for _, name := range t.names {
		if path.Base(name) != "go.work" {
			continue
		}
		content, err := t.read(name)
		if err != nil {
			return err
		}
		file, err := modfile.ParseWork(name, content, nil)
		if err != nil {
			return err
		}
		for _, replace := range file.Replace {
			if ours(replace.Old.Path) {
				replace.Syntax.Token = []string{"replace", replace.Old.Path, version, "=>", replace.New.Path}
			}
		}
		if err := t.set(name, modfile.Format(file.Syntax)); err != nil {
			return err
		}
	}
	return nil
}

// leaf is the depth of modules that no other requires.
const leaf = 2

// depth is greater than that of each module of ours that the module requires.
func (m goModule) depth() int {
	return slices.Index([]string{library, shared, m.path}, m.path)
}

// setRequirements sets the versions of the modules of ours that a module requires, and
// returns their paths.
func (t *tree) setRequirements(m goModule, version string) ([]string, error) {
	file, err := t.goMod(m.file("go.mod"))
	if err != nil {
		return nil, err
	}
	for _, replace := range file.Replace {
		if ours(replace.Old.Path) {
			return nil, fmt.Errorf("%s replaces %s: users could not install the module", m.file("go.mod"), replace.Old.Path)
		}
	}
	var required []string
	for _, require := range file.Require {
		switch name := require.Mod.Path; {
		case name == library || name == shared && m.path != shared:
			required = append(required, name)
		case ours(name):
			return nil, fmt.Errorf("%s requires %s: only the library and %s may be required", m.file("go.mod"), name, shared)
		}
	}
	for _, name := range required {
		if err := file.AddRequire(name, version); err != nil {
			return nil, err
		}
	}
	if required == nil {
		return nil, nil
	}
	content, err := file.Format()
	if err != nil {
		return nil, err
	}
	return required, t.set(m.file("go.mod"), content)
}

// checkVersion returns an error unless a version can be tagged in this
// repository.
func checkVersion(version string) error {
	if !semver.IsValid(version) || semver.Canonical(version) != version {
		return usagef("%q is not a version such as v0.1.0", version)
	}
	if major := semver.Major(version); major != "v0" && major != "v1" {
		return usagef("%s would need module paths that end in /%s", version, major)
	}
	return nil
}
