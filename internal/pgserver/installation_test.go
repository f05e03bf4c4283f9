package pgserver

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestVersionsAreParsed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		output, version string
		major           int
		ok              bool
	}{
		{"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", "15.18", 15, true},
		{"postgres (PostgreSQL) 18.1\n", "18.1", 18, true},
		{"postgres (PostgreSQL) 19beta1\n", "19beta1", 19, true},
		{"postgres (PostgreSQL) 19devel\n", "19devel", 19, true},
		{"postgres (PostgreSQL) \n", "", 0, false},
		{"postgres (PostgreSQL) unknown", "unknown", 0, false},
		{"something else", "", 0, false},
		{"", "", 0, false},
	} {
		version, major, ok := parseVersion(test.output)
		if version != test.version || major != test.major || ok != test.ok {
			t.Errorf("%q: got %q, %d, %v", test.output, version, major, ok)
		}
	}
}

// fakeInstallation makes a directory that looks like that of a server.
func fakeInstallation(t *testing.T, version string) string {
	t.Helper()
	directory := t.TempDir()
	for name, content := range map[string]string{
		"initdb":   "#!/bin/sh\n",
		"postgres": "#!/bin/sh\necho 'postgres (PostgreSQL) " + version + "'\n",
	} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

func TestNamedDirectoriesComeFirst(t *testing.T) {
	old, odd := fakeInstallation(t, "9.6.24"), fakeInstallation(t, "99.1")
	empty := t.TempDir()
	t.Setenv(BinariesVariable, strings.Join([]string{empty, old, odd}, string(os.PathListSeparator)))

	installations := Installations()
	if len(installations) < 2 || installations[0].Bin != old || installations[1].Bin != odd {
		t.Fatalf("got %+v", installations)
	}
	if found, err := Find(""); err != nil || found.Bin != old {
		t.Errorf("without a version: %+v, %v", found, err)
	}
	if found, err := Find("99"); err != nil || found.Bin != odd {
		t.Errorf("version 99: %+v, %v", found, err)
	}
	if _, err := Find("98"); !errors.Is(err, ErrNotInstalled) || !strings.Contains(err.Error(), "postgresql-98") {
		t.Errorf("version 98: %v", err)
	}
}

func TestQuoteEscapesSettings(t *testing.T) {
	t.Parallel()
	if got, want := quote(`it's a \ here`), `'it''s a \\ here'`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
