package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pack makes a folder like an unpacked package, with a list of links.
func pack(t *testing.T, links string) string {
	t.Helper()
	directory := t.TempDir()
	for name, content := range map[string]string{"native/lib/libpq.so.5.18": "library", "native/pg-symlinks.json": links} {
		path := filepath.Join(directory, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

func TestLinkMakesLinksThatMoveWithThePackage(t *testing.T) {
	directory := pack(t, `[{"source":"native/lib/libpq.so.5.18","target":"native/lib/libpq.so.5"}]`)
	if err := link(directory); err != nil {
		t.Fatal(err)
	}
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(filepath.Join(directory, "native"), moved); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(filepath.Join(moved, "lib", "libpq.so.5")); string(content) != "library" {
		t.Errorf("behind the link is %q, %v", content, err)
	}
}

func TestLinkStaysInThePackage(t *testing.T) {
	for _, links := range []string{
		`[{"source":"../../secret","target":"native/lib/a"}]`,
		`[{"source":"native/lib/libpq.so.5.18","target":"/tmp/a"}]`,
	} {
		if err := link(pack(t, links)); err == nil || !strings.Contains(err.Error(), "leaves the package") {
			t.Errorf("%s: got %v", links, err)
		}
	}
}

func TestFetchNamesTheVersionsItHas(t *testing.T) {
	if _, err := fetchAll(t.Context(), t.TempDir(), []string{"13"}); err == nil || !strings.Contains(err.Error(), "13") {
		t.Errorf("got %v", err)
	}
}
