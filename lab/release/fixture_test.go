package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/lab/release/pack"
)

const changelog = `# Changelog

## [Unreleased]

## [0.1.0] - 2026-11-22

### Added

- Everything.
`

// programSource is a program that requires what the programs share.
const programSource = `package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program"
)

func main() {
	switch os.Args[1] {
	case "completion":
		fmt.Println("complete", os.Args[2])
	case "manual":
		if os.MkdirAll(os.Args[2], 0o700) != nil || os.WriteFile(os.Args[2]+"/%[1]s.1", []byte(os.Getenv("SOURCE_DATE_EPOCH")), 0o600) != nil {
			os.Exit(1)
		}
	default:
		build, _ := debug.ReadBuildInfo()
		if program.Library != tenure.Name {
			os.Exit(1)
		}
		fmt.Println("%[1]s", build.Main.Version)
	}
}
`

// newRepository makes a small repository with the same modules as this one, all
// of them committed.
func newRepository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{
		"go.mod":       "module " + library + "\n\ngo 1.26\n",
		"go.sum":       "",
		"tenure.go":    "// Package tenure is a library.\npackage tenure\n\n// Name is exported.\nconst Name = \"tenure\"\n",
		"LICENSE":      "Free.\n",
		"README.md":    "# Tenure\n\n[Deploy](docs/deploy.md)\n",
		"CHANGELOG.md": changelog,
		"go.work": "go 1.26\n\nuse (\n\t.\n\t./cmd/tenure\n\t./internal/program\n\t./adapters/tracing\n\t./adapters/kafka\n\t./server\n)\n\n" +
			"// The version that is required.\nreplace " + library + " v0.0.9 => .\n\nreplace " + shared + " v0.0.9 => ./internal/program\n",
		"lab/go.mod":                   "module " + library + "/lab\n\ngo 1.26\n",
		"lab/go.sum":                   "",
		"cmd/tenure/main.go":           fmt.Sprintf(programSource, "tenure"),
		"server/tenure-server/main.go": fmt.Sprintf(programSource, "tenure-server"),
		"server/server.go":             "// Package server makes the module one of several packages.\npackage server\n",
		"internal/program/program.go": `package program

import "github.com/exactly-one/tenure"

const Library = tenure.Name
`,
		"cmd/tenure/main_test.go":        "package main\n",
		"deploy/systemd/tenure@.service": "[Service]\nExecStart=/usr/local/bin/tenure run\n",
		"deploy/docker/Dockerfile":       "FROM scratch\n",
		"deploy/docker/go.work":          "go 1.26\n\nuse (\n\t../..\n\t../../cmd/tenure\n\t../../internal/program\n\t../../server\n)\n\nreplace " + library + " v0.0.9 => ../..\n\nreplace " + shared + " v0.0.9 => ../../internal/program\n",
		".dockerignore":                  ".git\ndeploy\n!deploy/docker/go.work\nadapters\n**/*_test.go\n**/*.md\n",
		".gitignore":                     "/dist/\n/tmp/\n",
		"lab/release/testdata/user/main.go": `package main

import (
	"fmt"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/adapters/tracing"
	"github.com/exactly-one/tenure/adapters/kafka"
)

func main() { fmt.Println(tenure.Name, tracing.Name, kafka.Name) }
`,
	}
	for _, folder := range []string{"cmd/tenure", "internal/program", "adapters/tracing", "adapters/kafka", "server"} {
		files[folder+"/go.mod"] = "module " + library + "/" + folder + "\n\ngo 1.26\n\nrequire " + library + " v0.0.9\n"
		files[folder+"/go.sum"] = ""
		switch name := filepath.Base(folder); name {
		case "tenure", "server":
			files[folder+"/go.mod"] += "\nrequire " + shared + " v0.0.9\n"
		case "program":
		default:
			files[folder+"/"+name+".go"] = "package " + name + "\n\nimport \"" + library + "\"\n\nconst Name = tenure.Name\n"
		}
	}
	for name, content := range files {
		put(t, root, name, content)
	}
	inGit(t, root, "init", "--quiet", "--initial-branch=main")
	for _, setting := range []string{
		"user.name Test", "user.email test@example.com", "commit.gpgSign false", "tag.gpgSign false", "core.autocrlf false",
	} {
		inGit(t, root, append([]string{"config"}, strings.Fields(setting)...)...)
	}
	commit(t, root)
	return root
}

// hostOnly are the platforms that tests build for: all of them take minutes.
var hostOnly = []pack.Target{host}

// dryRun is the release of a version that changes no file of a repository.
func dryRun(root, version string) release {
	return release{root: root, version: version, targets: hostOnly}
}

// tagRepository releases a version in a repository.
func tagRepository(t *testing.T, root, version string) error {
	t.Helper()
	return release{root: root, version: version, commit: true, targets: hostOnly}.tag(t.Context(), &strings.Builder{})
}

// put writes a file of a repository.
func put(t *testing.T, root, name, content string) {
	t.Helper()
	if err := writeFile(filepath.Join(root, name), []byte(content)); err != nil {
		t.Fatal(err)
	}
}

// get reads a file of a repository.
func get(t *testing.T, root, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func commit(t *testing.T, root string) {
	t.Helper()
	inGit(t, root, "add", "--all")
	inGit(t, root, "commit", "--quiet", "--message", "Change")
}

// inGit runs Git in a repository and returns what it printed.
func inGit(t *testing.T, root string, words ...string) string {
	t.Helper()
	printed, err := git(t.Context(), root, words...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(printed)
}
