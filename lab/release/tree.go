package main

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// tree is the files of the repository, with changes that may never be written.
type tree struct {
	root    string
	names   []string          // with slashes, relative to root
	changed map[string][]byte // new contents by name
}

// readTree lists the files in a folder, without those of Git and without what
// the Makefile builds.
func readTree(root string) (*tree, error) {
	t := &tree{root: root, changed: map[string][]byte{}}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(relative)
		if slices.Contains([]string{".git", "bin", "dist", "tmp", "cmd/tenure/tenure"}, name) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil // a worktree's .git is a file
		}
		if entry.Type().IsRegular() {
			t.names = append(t.names, name)
		}
		return nil
	})
	return t, err
}

func (t *tree) path(name string) string { return filepath.Join(t.root, filepath.FromSlash(name)) }

func (t *tree) has(name string) bool { return slices.Contains(t.names, name) }

func (t *tree) read(name string) ([]byte, error) {
	if content, ok := t.changed[name]; ok {
		return content, nil
	}
	return os.ReadFile(t.path(name))
}

// set gives a file another content in the tree alone.
func (t *tree) set(name string, content []byte) error {
	old, err := t.read(name)
	if err != nil || bytes.Equal(old, content) {
		return err
	}
	t.changed[name] = content
	return nil
}

func (t *tree) changedNames() []string { return slices.Sorted(maps.Keys(t.changed)) }

// write writes the changed files to the folder.
func (t *tree) write() error {
	for name, content := range t.changed {
		if err := os.WriteFile(t.path(name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes a file and makes its folder.
func writeFile(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o644)
}
