package database

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/lease"
)

func TestLocalPathIsInStateDirectory(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_STATE_HOME", state)
	target, err := Local()
	if err != nil {
		t.Fatal(err)
	}
	if !target.Leases() || target.Dialect() != lease.SQLite {
		t.Errorf("got %v", target.Dialect())
	}
	if _, err := os.Stat(state); err == nil {
		t.Error("asking for the place made it")
	}
	open(t, target)
	open(t, target) // now that it is there
	directory, err := os.Stat(filepath.Join(state, "tenure"))
	if err != nil || directory.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v, %v", directory, err)
	}
	file, err := os.Stat(filepath.Join(state, "tenure", "local.db"))
	if err != nil || file.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", file, err)
	}
}

func TestLocalNeedsADirectory(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "")
	if _, err := Local(); !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), "HOME") {
		t.Errorf("got %v", err)
	}

	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_STATE_HOME", file)
	target, err := Local()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := target.Open(t.Context()); !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), "directory of the local database") {
		t.Errorf("got %v", err)
	}
}

func TestStateDirectoryFollowsXDG(t *testing.T) {
	t.Setenv("HOME", "/home/user")
	for xdg, want := range map[string]string{
		"":         "/home/user/.local/state",
		"relative": "/home/user/.local/state",
		"/other":   "/other",
	} {
		t.Setenv("XDG_STATE_HOME", xdg)
		if got, err := stateDirectory("linux"); got != want || err != nil {
			t.Errorf("XDG_STATE_HOME=%q: got %q, %v", xdg, got, err)
		}
	}
}
