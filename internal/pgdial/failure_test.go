package pgdial

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// The text of a failed connection has the host, the user, the database and each cause
// once, and never the password.
func TestFailureNamesEachCauseOnce(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{HBA: []string{"host all app 127.0.0.1/32 scram-sha-256"}})
	admin := server.Conn(t)
	pgtest.Exec(t, admin, "CREATE ROLE app LOGIN PASSWORD 'right'")
	closed := closedPort(t)
	port := strings.TrimPrefix(closed, "127.0.0.1:")
	silent := listener(t, func(net.Conn) {})
	name, address := net.JoinHostPort("db", port), server.Host+":"+strconv.Itoa(server.Port)
	const slow = "no connection within 300ms, which connect_timeout in the connection string can change"
	for title, test := range map[string]struct {
		dsn    string
		lookup map[string][]string
		want   string
	}{
		"nothing listens": {"postgres://app:hidden@" + closed + "/x", nil,
			"cannot connect to " + closed + " as app, database x: connection refused"},
		"nothing listens at either address": {"postgres://app:hidden@" + name + "/x", map[string][]string{"db": {"127.0.0.1", "127.0.0.2"}},
			"cannot connect to " + name + " as app, database x: connection refused"},
		"no database named": {"postgres://app:hidden@" + closed, nil,
			"cannot connect to " + closed + " as app: connection refused"},
		"unknown host": {"postgres://app:hidden@db:5432/x", map[string][]string{},
			"cannot connect to db:5432 as app, database x: no such host"},
		"wrong password": {"postgres://app:hidden@" + address + "/postgres", nil,
			"cannot connect to " + address + ` as app, database postgres: FATAL: password authentication failed for user "app" (SQLSTATE 28P01)`},
		"unknown database": {"postgres://app:right@" + address + "/nosuch", nil,
			"cannot connect to " + address + ` as app, database nosuch: FATAL: database "nosuch" does not exist (SQLSTATE 3D000)`},
		"no answer": {"postgres://app:hidden@" + silent + "/x", nil,
			"cannot connect to " + silent + " as app, database x: " + slow},
		"two hosts": {"postgres://app:hidden@" + closed + ",db:1/x", map[string][]string{},
			"cannot connect to " + closed + " as app, database x: connection refused\ncannot connect to db:1 as app, database x: no such host"},
		"addresses with different causes": {"postgres://app:hidden@" + name + "/x", map[string][]string{"db": {closed, silent}},
			"cannot connect to " + name + " as app, database x: " + closed + ": connection refused; " + silent + ": " + slow},
	} {
		config, err := pgx.ParseConfig(test.dsn)
		if err != nil {
			t.Fatal(err)
		}
		if test.lookup != nil {
			config.LookupFunc = func(_ context.Context, host string) ([]string, error) {
				if found := test.lookup[host]; found != nil || net.ParseIP(host) == nil {
					if found == nil {
						return nil, &net.DNSError{Err: "no such host", Name: host, Server: "192.0.2.1:53", IsNotFound: true}
					}
					return found, nil
				}
				return []string{host}, nil
			}
		}
		if strings.Contains(test.want, slow) {
			config.ConnectTimeout = 300 * time.Millisecond
		}
		_, err = New(clocks.System()).Connect(t.Context(), config, Options{Use: Question})
		err = Explain(err)
		if err == nil || err.Error() != test.want {
			t.Errorf("%s:\n got %v\nwant %s", title, err, test.want)
			continue
		}
		if !errors.Is(err, tenure.ErrConnection) {
			t.Errorf("%s: the error does not match ErrConnection", title)
		}
		var connect *pgconn.ConnectError
		if reached := !strings.HasPrefix(title, "unknown host"); reached && !errors.As(err, &connect) {
			t.Errorf("%s: the error wraps no *pgconn.ConnectError", title)
		}
	}
}

// closedPort returns an address where nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	listening, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listening.Close() }()
	return listening.Addr().String()
}
