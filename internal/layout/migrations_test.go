package layout

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// git runs a command of git in a folder and returns its output.
func git(folder string, args ...string) ([]byte, error) {
	command := exec.Command("git", append([]string{"-C", folder}, args...)...)
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return output, nil
}

// migrationsSince returns the migrations of a tag that are missing or have another text now.
func migrationsSince(root, tag string) (edited []string, err error) {
	names, err := git(root, "ls-tree", "-r", "--name-only", tag)
	if err != nil {
		return nil, err
	}
	for name := range strings.Lines(string(names)) {
		name = strings.TrimSpace(name)
		if !strings.HasSuffix(name, ".up.sql") {
			continue
		}
		released, err := git(root, "show", tag+":"+name)
		if err != nil {
			return nil, err
		}
		if present, err := os.ReadFile(filepath.Join(root, name)); err != nil || !bytes.Equal(present, released) {
			edited = append(edited, name)
		}
	}
	return edited, nil
}

// TestReleasedMigrationsAreNeverEdited: a database made by a release stays usable for every
// later one.
func TestReleasedMigrationsAreNeverEdited(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	tag, err := git(root, "describe", "--tags", "--abbrev=0", "--match=v*")
	if err != nil {
		return // there is no release, or no repository: TestMigrationsAreThoseOfTheirDigests compares
	}
	edited, err := migrationsSince(root, strings.TrimSpace(string(tag)))
	if err != nil {
		t.Fatal(err)
	}
	if len(edited) > 0 {
		t.Errorf("%v differ from %s: add a migration with a new number, and leave these as they were released", edited, bytes.TrimSpace(tag))
	}
}

// The comparison with a tag finds a migration that was edited and one that was removed.
func TestEditOfReleasedMigrationIsFound(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"0001.up.sql", "0002.up.sql", "0003.up.sql"} {
		write(name, "CREATE TABLE one ();")
	}
	for _, args := range [][]string{
		{"init", "--quiet"}, {"add", "."},
		{"-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false", "commit", "--quiet", "--message=one"}, {"tag", "v1.0.0"},
	} {
		if _, err := git(root, args...); err != nil {
			t.Fatal(err)
		}
	}
	write("0002.up.sql", "CREATE TABLE two ();")
	write("0004.up.sql", "CREATE TABLE later ();")
	if err := os.Remove(filepath.Join(root, "0003.up.sql")); err != nil {
		t.Fatal(err)
	}
	edited, err := migrationsSince(root, "v1.0.0")
	if got := strings.Join(edited, " "); err != nil || got != "0002.up.sql 0003.up.sql" {
		t.Errorf("edited since the tag: %q, %v; want 0002.up.sql 0003.up.sql", got, err)
	}
}

// TestMigrationsAreThoseOfTheirDigests: a commit changes a migration on purpose. With
// TENURE_WRITE_REFERENCE=1 it writes the file; a database made by an earlier commit then
// needs tenure migrate repair.
func TestMigrationsAreThoseOfTheirDigests(t *testing.T) {
	t.Parallel()
	root, file := filepath.Join("..", ".."), "migrations.sha256"
	var digests strings.Builder
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".up.sql") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		sum := sha256.Sum256(text)
		fmt.Fprintf(&digests, "%s  %s\n", hex.EncodeToString(sum[:]), filepath.ToSlash(name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("TENURE_WRITE_REFERENCE") == "1" {
		if err := os.WriteFile(file, []byte(digests.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	recorded, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(recorded) != digests.String() {
		t.Errorf("a migration was changed: %s has\n%s\nand the migrations\n%s\nAdd a migration, or write the file with TENURE_WRITE_REFERENCE=1 if no release has made the tables", file, recorded, digests.String())
	}
}
