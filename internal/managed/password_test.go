//go:build unix

package managed_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// secured are the lines of pg_hba.conf of a server that takes only passwords over
// TLS.
var secured = []string{"hostssl all app 127.0.0.1/32 scram-sha-256", "host all app 127.0.0.1/32 reject"}

// encrypted makes the customer connect over TLS and with a password.
func (s *site) encrypted(password string) {
	s.Helper()
	s.server.EnableTLS(s.T)
	s.do(fmt.Sprintf("ALTER ROLE app PASSWORD '%s'", password))
	s.dsn = strings.Replace(strings.Replace(s.dsn, "sslmode=disable", "sslmode=require", 1), "app@", "app:"+password+"@", 1)
}

// Nodes connect where the server takes only TLS and SCRAM.
func TestServerRequiresTLSAndSCRAM(t *testing.T) {
	t.Parallel()
	s := newSite(t, pgtest.Options{HBA: secured, Settings: map[string]string{"password_encryption": "scram-sha-256"}})
	s.encrypted("first")
	s.exercise()

	s.dsn = strings.Replace(s.dsn, "sslmode=require", "sslmode=disable", 1)
	if _, err := s.open("plain", fewTries); err == nil || !strings.Contains(err.Error(), "28000") {
		t.Errorf("without TLS: %v; want the server's refusal, SQLSTATE 28000", err)
	}
}

// The password changes while nodes live. Their sessions last, and a new session
// uses the password that the connect function then returns.
func TestPasswordRotates(t *testing.T) {
	t.Parallel()
	s := newSite(t, pgtest.Options{HBA: secured})
	s.encrypted("first")
	var password atomic.Pointer[string]
	rotate := func(to string) {
		t.Helper()
		s.do(fmt.Sprintf("ALTER ROLE app PASSWORD '%s'", to))
		password.Store(&to)
	}
	s.change = func(config *postgres.Config) {
		config.Connect = func(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
			config.Password = *password.Load()
			return pgx.ConnectConfig(ctx, config)
		}
	}
	rotate("second")
	leader, term, nodes := s.exercise()
	for _, next := range []string{"third", "fourth"} {
		rotate(next)
		s.write(term)
		if !term.Valid() {
			t.Errorf("the term ended when the password became the %s", next)
		}
		s.endSession(leader)
		leader, term = s.nextTerm(term.Number(), nodes...)
	}
	s.server.Restart(t, "fast") // all connections are new
	s.nextTerm(term.Number(), nodes...)
}
