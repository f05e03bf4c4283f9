package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBadCommandLinesExitWith2AndChangeNothing(t *testing.T) {
	t.Parallel()
	root := newRepository(t)
	put(t, root, "dist/notes.md", "of another version")
	for name, args := range map[string][]string{
		"no command":               {},
		"unknown command":          {"publish"},
		"unknown flag":             {"tag", "-force"},
		"no version":               {"tag"},
		"short version":            {"tag", "-version", "v0.1"},
		"version without a v":      {"tag", "-version", "0.1.0"},
		"version that needs paths": {"tag", "-version", "v2.0.0"},
		"version with options":     {"tag", "-version", "v0.1.0 --force"},
		"unknown platform":         {"tag", "-version", "v0.1.0", "-targets", "plan9/amd64"},
		"release of one platform":  {"tag", "-version", "v0.1.0", "-commit", "-targets", "linux/amd64"},
	} {
		if len(args) > 0 {
			args = append([]string{args[0], "-root", root}, args[1:]...)
		}
		err := run(t.Context(), &strings.Builder{}, args)
		if err == nil || exitCode(err) != 2 {
			t.Errorf("%s: error %v exits with %d; want 2", name, err, exitCode(err))
		}
	}
	if got := get(t, root, "dist/notes.md"); got != "of another version" {
		t.Errorf("dist/notes.md is %q", got)
	}
	if status := inGit(t, root, "status", "--porcelain"); status != "" {
		t.Errorf("changed files: %s", status)
	}
	if _, err := os.Stat(filepath.Join(root, "tmp")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder for temporary files was made (%v)", err)
	}
}

func TestOtherFailuresExitWith1(t *testing.T) {
	t.Parallel()
	root := newRepository(t)
	err := run(t.Context(), &strings.Builder{}, []string{"tag", "-root", root, "-version", "v0.2.0"})
	if err == nil || exitCode(err) != 1 {
		t.Errorf("error %v exits with %d; want 1", err, exitCode(err))
	}
}
