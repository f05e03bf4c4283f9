//go:build unix

package cli

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// A password that is rotated while the programs run is used by new connections: of a
// node that leads, of serve, and of a command.
func TestPasswordCommandFollowsRotation(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{HBA: []string{"host all app 127.0.0.1/32 scram-sha-256"}})
	admin := server.Conn(t)
	do := func(sql string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if _, err := admin.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	file := filepath.Join(t.TempDir(), "password")
	rotate := func(to string) {
		t.Helper()
		do("ALTER ROLE app PASSWORD '" + to + "'")
		rewrite(t, file, to)
	}
	do("CREATE ROLE app LOGIN")
	do("CREATE DATABASE app OWNER app")
	rotate("first-secret")
	database := []string{"--dsn", server.DSNFor("app", "app"), "--password-command", "cat " + file}
	node := launch(t, append([]string{"run", "--role", "billing", "-o", "json", "--name", "one"}, database...)...)
	term := node.await("acquired").term()
	page := launch(t, append([]string{"serve", "--listen", ":0", "--log-level", "info"}, database...)...)
	address := served(page)

	rotate("second-secret")
	do("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'app'")
	if next := node.await("acquired").term(); next <= term {
		t.Errorf("term %d after term %d", next, term)
	}
	eventually(t, "the page answers again", func() bool {
		status, _ := fetch(t, http.MethodGet, address+"/api/roles", "")
		return status == http.StatusOK
	})
	invoke(t, append([]string{"status"}, database...)...).want(t, console.ExitDone)

	// A command that fails is reported without what it printed.
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	failed := invoke(t, "status", "--dsn", server.DSNFor("app", "app"), "--password-command", "echo second-secret; exit 3")
	if failed.code == console.ExitDone || !strings.Contains(failed.stderr, "the password command failed: exit status 3") {
		t.Errorf("exit code %d: %s", failed.code, failed.stderr)
	}
	node.signal(syscall.SIGTERM)
	page.signal(syscall.SIGTERM)
	node.exit()
	page.exit()
	for _, log := range []string{node.log(), page.log(), failed.stderr, failed.stdout} {
		if strings.Contains(log, "-secret") {
			t.Errorf("a password was logged:\n%s", log)
		}
	}
}
