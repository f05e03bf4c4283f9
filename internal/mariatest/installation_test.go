package mariatest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakePrograms makes a directory with programs that look like MariaDB's.
func fakePrograms(t *testing.T, product string, names ...string) string {
	t.Helper()
	directory := t.TempDir()
	for _, name := range names {
		script := "#!/bin/sh\necho 'mysqld  Ver 8.0 (" + product + ")'\n"
		if err := os.WriteFile(filepath.Join(directory, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

func TestNamedDirectoryComesFirst(t *testing.T) {
	directory := fakePrograms(t, "MariaDB", "mariadbd", "mysqld", "mysql_install_db", "mysql")
	t.Setenv(BinariesVariable, directory)
	found, err := find()
	if err != nil {
		t.Fatal(err)
	}
	if found.server != filepath.Join(directory, "mariadbd") || found.initialize != filepath.Join(directory, "mysql_install_db") {
		t.Errorf("got %+v", found)
	}
}

func TestOtherMakeIsRefused(t *testing.T) {
	t.Setenv(BinariesVariable, fakePrograms(t, "MySQL Community Server", "mysqld", "mysql_install_db", "mysql"))
	if _, err := find(); !errors.Is(err, ErrNotInstalled) || !strings.Contains(err.Error(), "MySQL Community Server") {
		t.Errorf("got %v", err)
	}
}

func TestMissingServerSaysWhatToInstall(t *testing.T) {
	places := usualPlaces
	usualPlaces = nil
	t.Cleanup(func() { usualPlaces = places })
	t.Setenv("PATH", t.TempDir())
	_, err := find()
	if !errors.Is(err, ErrNotInstalled) || !strings.Contains(err.Error(), "apt-get install mariadb-server-core") {
		t.Errorf("got %v", err)
	}
}

// absentVariable makes this test binary one on a machine without MariaDB.
const absentVariable = "MARIATEST_ABSENT"

func TestMissingServerIsReported(t *testing.T) {
	if os.Getenv(absentVariable) != "" {
		usualPlaces = nil
		Shared(t)
		t.Fatal("a server was found")
	}
	for ci, want := range map[string]struct {
		code int
		says string
	}{
		"":     {0, "WARNING: 1 TESTS WERE SKIPPED: MariaDB is missing"},
		"true": {1, "FAIL: TestMissingServerIsReported"},
	} {
		command := exec.Command(os.Args[0], "-test.run", "^TestMissingServerIsReported$")
		command.Env = []string{"PATH=" + t.TempDir(), absentVariable + "=1", "CI=" + ci}
		output, _ := command.CombinedOutput() // its exit code says more
		if command.ProcessState.ExitCode() != want.code || !strings.Contains(string(output), want.says) {
			t.Errorf("CI=%q: exit code %d\n%s", ci, command.ProcessState.ExitCode(), output)
		}
	}
}
