package cli

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// A command that cannot connect says where and why, once, on one line.
func TestCommandSaysOnceWhyItCannotConnect(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{HBA: []string{"host all app 127.0.0.1/32 scram-sha-256"}})
	pgtest.Exec(t, server.Conn(t), "CREATE ROLE app LOGIN PASSWORD 'right'")
	listening, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := listening.Addr().String()
	if err := listening.Close(); err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort(server.Host, strconv.Itoa(server.Port))
	for name, test := range map[string]struct{ dsn, where, cause string }{
		"refused":          {"postgres://app:hidden@" + closed + "/x", closed + " as app, database x", "connection refused"},
		"wrong password":   {"postgres://app:hidden@" + address + "/postgres", address + " as app, database postgres", "password authentication failed"},
		"unknown database": {"postgres://app:right@" + address + "/nosuch", address + " as app, database nosuch", "does not exist"},
		"unknown host":     {"postgres://app:hidden@nosuch.invalid:5432/x", "nosuch.invalid:5432 as app, database x", ""},
	} {
		for _, command := range []string{"status", "cron list", "history", "acquire --role billing", "migrate status", "doctor"} {
			t.Run(name+"/"+command, func(t *testing.T) {
				t.Parallel()
				printed := invoke(t, append(strings.Fields(command), "--dsn", test.dsn)...).want(t, console.ExitDatabase)
				message, lines := printed.stderr, 1
				if command == "doctor" { // the finding comes before the summary
					message, lines = printed.stdout+printed.stderr, 2
				}
				if got := strings.Count(message, "\n"); got != lines {
					t.Errorf("%d lines, want %d: %s", got, lines, message)
				}
				if !strings.Contains(message, "cannot connect to "+test.where+": ") || !strings.Contains(message, test.cause) {
					t.Errorf("got %q; want where (%s) and why (%s)", message, test.where, test.cause)
				}
				seen := map[string]bool{}
				for _, segment := range strings.Split(strings.ReplaceAll(strings.TrimSpace(message), ";", ":"), ": ") {
					if segment = strings.TrimSpace(segment); seen[segment] {
						t.Errorf("%q is printed twice: %s", segment, message)
					}
					seen[segment] = true
				}
				if strings.Contains(message, "hidden") {
					t.Errorf("the password is printed: %s", message)
				}
			})
		}
	}
}
