package main

import (
	"strings"
	"testing"
)

func TestCheckInstallsTheProgram(t *testing.T) {
	t.Parallel()
	root := newRepository(t)
	before := inGit(t, root, "status", "--porcelain")
	if err := run(t.Context(), &strings.Builder{}, []string{"check", "-root", root}); err != nil {
		t.Fatal(err)
	}
	if after := inGit(t, root, "status", "--porcelain"); after != before {
		t.Errorf("changed files: %q", after)
	}
}

func TestCheckFindsFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ file, old, replacement, want string }{
		"program without a version": {"cmd/tenure/main.go", "build.Main.Version", "build.Main.Path", "want the version v0.0.0-trial"},
		"module that is replaced":   {"adapters/kafka/go.mod", "go 1.26\n", "go 1.26\n\nreplace " + library + " => ../..\n", "replaces"},
		"module that requires a publisher": {
			"cmd/tenure/go.mod", "go 1.26\n", "go 1.26\n\nrequire " + library + "/adapters/kafka v0.0.9\n", "only the library and",
		},
		"missing requirement": {
			"adapters/kafka/kafka.go", "import \"" + library + "\"\n", "import (\n\t\"" + library + "\"\n\t_ \"golang.org/x/mod/semver\"\n)\n",
			"build every module alone",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := newRepository(t)
			put(t, root, test.file, strings.Replace(get(t, root, test.file), test.old, test.replacement, 1))
			err := check(t.Context(), &strings.Builder{}, root, "")
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v; want one with %q", err, test.want)
			}
		})
	}
}

// Modules are packed from the folder: what a release made would become a part of
// the library.
func TestFilesThatWereMadeAreNotPacked(t *testing.T) {
	t.Parallel()
	root := newRepository(t)
	made := []string{"dist/notes.md", "tmp/x", "bin/tenure"}
	for _, name := range made {
		put(t, root, name, "made\n")
	}
	files, err := readTree(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range made {
		if files.has(name) {
			t.Errorf("%s is a file of the library", name)
		}
	}
	if !files.has("tenure.go") {
		t.Error("tenure.go is no file of the library")
	}
}
