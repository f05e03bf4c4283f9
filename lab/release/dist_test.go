package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/lab/release/pack"
)

// linux is the platform of a Debian package, which the tests make on every system.
var linux = pack.Target{OS: "linux", Arch: host.Arch}

// makeTestDist makes the files to publish of a repository, for this machine and for
// Linux, and returns them by their names.
func makeTestDist(t *testing.T, root string) map[string]string {
	t.Helper()
	r := dryRun(root, "v0.1.0")
	if !slices.Contains(r.targets, linux) {
		r.targets = append([]pack.Target{linux}, r.targets...)
	}
	if err := r.tag(t.Context(), &strings.Builder{}); err != nil {
		t.Fatal(err)
	}
	return readDist(t, root)
}

func readDist(t *testing.T, root string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, distFolder))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		files[entry.Name()] = get(t, root, distFolder+"/"+entry.Name())
	}
	return files
}

func TestDistIsComplete(t *testing.T) {
	t.Parallel()
	root := newRepository(t)
	files := makeTestDist(t, root)
	system := "tenure_0.1.0_linux_" + host.Arch
	want := []string{
		"SHA256SUMS", "notes.md", system + ".tar.gz", system + ".cdx.json", strings.Replace(system, "tenure", "tenure-server", 1) + ".cdx.json",
		"tenure_0.1.0_" + host.Arch + ".deb", "tenure_0.1.0_docker-context.tar.gz",
	}
	for _, name := range want {
		if files[name] == "" {
			t.Errorf("no file %s", name)
		}
	}
	if host == linux && len(files) != len(want) {
		t.Errorf("%d files; want %d", len(files), len(want))
	}
	for name, content := range files {
		line := fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(content)), name)
		listed := name != "SHA256SUMS" && name != "notes.md"
		if strings.Contains(files["SHA256SUMS"], line) != listed {
			t.Errorf("SHA256SUMS lists %s: %t; want %t", name, !listed, listed)
		}
	}
	if notes, want := files["notes.md"], "### Added\n\n- Everything.\n"; notes != want {
		t.Errorf("the notes are %q; want %q", notes, want)
	}
	if bom := files[system+".cdx.json"]; !strings.Contains(bom, `"pkg:golang/`+library+`@v0.1.0"`) {
		t.Errorf("the bill of materials has no library of the version:\n%s", bom)
	}
	checkInstalled(t, unpack(t, files[system+".tar.gz"]), system+"/")
	if _, err := exec.LookPath("dpkg-deb"); err == nil { // another test reads packages without it
		folder := t.TempDir()
		_, err := output(t.Context(), root, os.Environ(), "dpkg-deb", "--extract", "dist/tenure_0.1.0_"+host.Arch+".deb", folder)
		if err != nil {
			t.Fatal(err)
		}
		checkInstalled(t, folder, "usr/bin/")
	}
}

// checkInstalled runs the program of a package for Linux, if this machine can.
func checkInstalled(t *testing.T, folder, where string) {
	t.Helper()
	program := filepath.Join(folder, where, "tenure")
	if host != linux {
		if _, err := os.Stat(program); err != nil {
			t.Error(err)
		}
		return
	}
	printed, err := output(t.Context(), folder, os.Environ(), program, "version")
	if want := "tenure v0.1.0\n"; err != nil || printed != want {
		t.Errorf("tenure version prints %q (%v); want %q", printed, err, want)
	}
}

// unpack writes the files of an archive into a folder, which it returns.
func unpack(t *testing.T, content string) string {
	t.Helper()
	plain, err := gzip.NewReader(strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	folder, archive := t.TempDir(), tar.NewReader(plain)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return folder
		}
		if err != nil {
			t.Fatal(err)
		}
		file, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(folder, header.Name)
		if err := errors.Join(writeFile(name, file), os.Chmod(name, header.FileInfo().Mode())); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDistIsReproducible(t *testing.T) {
	t.Parallel()
	root := newRepository(t)
	first := makeTestDist(t, root)
	// A clone has other times and another folder.
	clone := filepath.Join(t.TempDir(), "clone")
	inGit(t, root, "clone", "--quiet", root, clone)
	second := makeTestDist(t, clone)
	if len(first) != len(second) {
		t.Errorf("%d files; the second time %d", len(first), len(second))
	}
	for name, content := range first {
		if second[name] != content {
			t.Errorf("%s differs between two runs", name)
		}
	}
}

func TestDistTakesItsTimeFromTheCommit(t *testing.T) {
	t.Parallel()
	root := newRepository(t)
	committed := inGit(t, root, "log", "-1", "--format=%ct")
	for epoch, want := range map[string]string{"": committed, "1000": "1000"} {
		made, author, err := lastCommit(t.Context(), root, epoch)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(made.Unix()); got != want || author != "Test <test@example.com>" {
			t.Errorf("SOURCE_DATE_EPOCH=%s: the time is %s, by %s; want %s", epoch, got, author, want)
		}
	}
	if _, _, err := lastCommit(t.Context(), root, "today"); err == nil || exitCode(err) != 2 {
		t.Errorf("error %v for a time that is no number", err)
	}
	files := unpack(t, makeTestDist(t, root)["tenure_0.1.0_linux_"+host.Arch+".tar.gz"])
	if got := get(t, files, "tenure_0.1.0_linux_"+host.Arch+"/man/man1/tenure.1"); got != committed {
		t.Errorf("the manual is of %s; want %s", got, committed)
	}
}

func TestDistReplacesAnotherVersion(t *testing.T) {
	t.Parallel()
	root := newRepository(t)
	put(t, root, "dist/tenure_0.0.9_linux_amd64.tar.gz", "of another version")
	put(t, root, "dist/folder/file", "in a folder")
	files := makeTestDist(t, root)
	for name := range files {
		if !strings.HasPrefix(name, "tenure_0.1.0_") && !strings.HasPrefix(name, "tenure-server_0.1.0_") && name != "SHA256SUMS" && name != "notes.md" {
			t.Errorf("dist has %s", name)
		}
	}
	if left, err := os.ReadDir(filepath.Join(root, "tmp")); err != nil || len(left) > 0 {
		t.Errorf("temporary files: %v (%v)", left, err)
	}
}

func TestDistStaysIfItCannotBeMade(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"program that does not compile":  "cmd/tenure/main.go",
		"unit without the program":       "deploy/systemd/tenure@.service",
		"pattern that cannot be matched": ".dockerignore",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := newRepository(t)
			put(t, root, file, "[\n")
			commit(t, root)
			put(t, root, "dist/notes.md", "of another version")
			r := dryRun(root, "v0.1.0")
			r.targets = []pack.Target{linux}
			if err := r.tag(t.Context(), &strings.Builder{}); err == nil || !strings.HasPrefix(err.Error(), "dist: ") {
				t.Errorf("error %v; want one that names dist", err)
			}
			if got := readDist(t, root); len(got) != 1 || got["notes.md"] != "of another version" {
				t.Errorf("dist has %v", got)
			}
		})
	}
}

// The image is built from what the context has: nothing is missing, and the library
// is the one in it.
func TestDockerContextBuilds(t *testing.T) {
	t.Parallel()
	folder := unpack(t, makeTestDist(t, newRepository(t))["tenure_0.1.0_docker-context.tar.gz"])
	var names []string
	if err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(folder, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want := ".dockerignore .gitignore LICENSE cmd/tenure/go.mod cmd/tenure/go.sum cmd/tenure/main.go " +
		"deploy/docker/Dockerfile deploy/docker/go.work go.mod go.sum go.work internal/program/go.mod internal/program/go.sum internal/program/program.go " +
		"lab/go.mod lab/go.sum lab/release/testdata/user/main.go server/go.mod server/go.sum server/server.go server/tenure-server/main.go tenure.go"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("the context has:\n%s\nwant:\n%s", got, want)
	}
	environment := append(os.Environ(), "GOWORK="+filepath.Join(folder, "deploy", "docker", "go.work"), "GOFLAGS=", "GOPROXY=off")
	text, err := output(t.Context(), filepath.Join(folder, "cmd", "tenure"), environment, "go", "list", "-deps", "-json=Dir,ImportPath", ".")
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	for decoder.More() {
		var p struct{ Dir, ImportPath string }
		if err := decoder.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if p.ImportPath == library && !sameFolder(t, p.Dir, folder) {
			t.Errorf("the library is in %s; want %s", p.Dir, folder)
		}
	}
}

func sameFolder(t *testing.T, a, b string) bool {
	t.Helper()
	first, err := os.Stat(a)
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.Stat(b)
	if err != nil {
		t.Fatal(err)
	}
	return os.SameFile(first, second)
}
