package main

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// library is the module in the repository's root, the only one of ours that
// others require.
const library = "github.com/exactly-one/tenure"

// unpublished are the modules that serve the repository alone: they get no tags.
var unpublished = []string{"adapters/recipes", "bench/chaos", "deploy/validate", "internal/oidcprovider", "internal/release"}

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

func (m goModule) published() bool { return !slices.Contains(unpublished, m.folder) }

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

// setVersion makes all modules require the library at a version, with its
// checksums, and the workspaces provide that version.
func (t *tree) setVersion(version string) error {
	if err := t.setWorkspaces(version); err != nil {
		return err
	}
	all, err := t.modules()
	if err != nil {
		return err
	}
	sums, err := t.checksums(all[0], version)
	if err != nil {
		return err
	}
	for _, m := range all {
		requires, err := t.setRequirement(m, version)
		if err != nil {
			return err
		}
		if requires {
			if err := t.setChecksums(m, sums); err != nil {
				return err
			}
		}
	}
	return nil
}

// setWorkspaces replaces the version of the library by its folder in every
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
			if replace.Old.Path == library {
				replace.Syntax.Token = []string{"replace", library, version, "=>", replace.New.Path}
			}
		}
		if err := t.set(name, modfile.Format(file.Syntax)); err != nil {
			return err
		}
	}
	return nil
}

// setRequirement sets the version of the library that a module requires, and
// reports whether it requires the library.
func (t *tree) setRequirement(m goModule, version string) (bool, error) {
	file, err := t.goMod(m.file("go.mod"))
	if err != nil {
		return false, err
	}
	for _, replace := range file.Replace {
		if ours(replace.Old.Path) {
			return false, fmt.Errorf("%s replaces %s: users could not install the module", m.file("go.mod"), replace.Old.Path)
		}
	}
	requires := false
	for _, require := range file.Require {
		switch {
		case require.Mod.Path == library:
			requires = true
		case ours(require.Mod.Path):
			return false, fmt.Errorf("%s requires %s: only the library may be required", m.file("go.mod"), require.Mod.Path)
		}
	}
	if !requires {
		return false, nil
	}
	if err := file.AddRequire(library, version); err != nil {
		return false, err
	}
	content, err := file.Format()
	if err != nil {
		return false, err
	}
	return true, t.set(m.file("go.mod"), content)
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
