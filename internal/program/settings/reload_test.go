package settings

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestReloadRetriesFailedChange: a change that could not be applied is tried again at the
// next reload, also of the same file: what was in its way may be gone. One that was applied
// is not.
func TestReloadRetriesFailedChange(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tenure.toml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const user = "[[dashboard.users]]\nname = 'anna'\npassword_hash = '$2a$04$......................cCWvKVDlpR7WHlH.Rz/SGvAs0nsZRKi'\n"
	write("[node]\nlog_level = 'info'\n")
	config := &Configuration{Path: path, command: "serve"}
	if err := config.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, name := range []string{"login-required", "log-level"} {
		flags.String(name, "", "")
	}
	var applied []string
	failure := errors.New("the password file has the user too")
	var log bytes.Buffer
	r := &Reloader{Flags: flags, Config: config, Log: slog.New(slog.NewTextHandler(&log, nil)), Live: Live{
		LiveList("dashboard.users"): func(string) error { applied = append(applied, "users"); return failure },
		"log-level":                 func(level string) error { applied = append(applied, level); return nil },
	}}
	check := func(step string, want ...string) {
		t.Helper()
		applied = nil
		log.Reset()
		r.reload(t.Context())
		if slices.Sort(applied); !slices.Equal(applied, want) {
			t.Errorf("%s: %q were applied; want %q\n%s", step, applied, want, log.String())
		}
	}
	write("[node]\nlog_level = 'debug'\n" + user)
	check("a change fails", "debug", "users")
	check("it fails again", "users")
	if !strings.Contains(log.String(), failure.Error()) || !strings.Contains(log.String(), "changes=1") {
		t.Errorf("the log is %s", log.String())
	}
	failure = nil
	check("it succeeds", "users")
	check("everything is applied")
	failure = errors.New("once more")
	write("[node]\nlog_level = 'debug'\n")
	check("the next change fails", "users")
	failure = nil
	write("[node]\nlog_level = 'debug'\n" + user)
	check("it is taken back", "users")
	check("nothing is left")
}
