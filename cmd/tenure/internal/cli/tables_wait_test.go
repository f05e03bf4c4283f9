package cli

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/internal/program/console"
)

// Commands that follow the leaders start before the first node: they wait for the tables,
// which it creates, and say so once. A signal ends the wait.
func TestFollowersAwaitTheTables(t *testing.T) {
	t.Parallel()
	for _, elections := range []string{"sessions", "leases"} {
		t.Run(elections, func(t *testing.T) {
			t.Parallel()
			with := newPlace(t).with
			if elections == "leases" {
				file := filepath.Join(t.TempDir(), "leases.db")
				with = func(args ...string) []string { return append(args, "--dsn", "sqlite:"+file) }
			}
			for name, args := range map[string][]string{
				"proxy":   {"proxy", "--role", "billing", "--listen", "127.0.0.1:0", "--to-port", "9"},
				"observe": {"observe"},
			} {
				p := launch(t, with(args...)...)
				p.awaitLog("waiting for the tables")
				p.signal(syscall.SIGTERM)
				if code := p.exit(); code != console.ExitDone {
					t.Errorf("%s ended with %d on a signal; want %d", name, code, console.ExitDone)
				}
			}
			proxy := launch(t, with("proxy", "--role", "billing", "--listen", "127.0.0.1:0", "--to-port", "9")...)
			observer := launch(t, with("observe")...)
			for _, p := range []*process{proxy, observer} {
				p.awaitLog("waiting for the tables")
			}
			launch(t, with("run", "--role", "billing", "-o", "json")...).await("acquired")
			for p, want := range map[*process]string{proxy: "forwarding ", observer: "leads billing"} {
				if line, _ := p.line(); !strings.Contains(line, want) {
					t.Errorf("the first line is %q; want %q in it", line, want)
				}
				if n := strings.Count(p.log(), "waiting for the tables"); n != 1 {
					t.Errorf("%d lines say that the command waits, want 1:\n%s", n, p.log())
				}
			}
		})
	}
}
