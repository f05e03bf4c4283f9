//go:build unix

package managed_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
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
// uses the new password, wherever it comes from.
func TestSessionsSurvivePasswordRotation(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]func(s *site) (rotate func(to string)){
		"connect function": func(s *site) func(string) {
			var password atomic.Pointer[string]
			s.change = func(config *postgres.Config) {
				config.Connect = func(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
					config.Password = *password.Load()
					return pgx.ConnectConfig(ctx, config)
				}
			}
			return func(to string) { password.Store(&to) }
		},
		"password function": func(s *site) func(string) {
			var password atomic.Pointer[string]
			s.change = func(config *postgres.Config) {
				config.Password = func(context.Context) (string, error) { return *password.Load(), nil }
			}
			return func(to string) { password.Store(&to) }
		},
		"password file": func(s *site) func(string) {
			file := filepath.Join(s.TempDir(), "pgpass")
			s.dsn += "&passfile=" + url.QueryEscape(file)
			return func(to string) { s.rewrite(file, "*:*:*:app:"+to+"\n") }
		},
		"service file": func(s *site) func(string) {
			file := filepath.Join(s.TempDir(), "services")
			address := fmt.Sprintf("[app]\nhost=%s\nport=%d\nuser=app\ndbname=app\nsslmode=require\n", s.server.Host, s.server.Port)
			s.dsn = "service=app servicefile=" + file
			return func(to string) { s.rewrite(file, address+"password="+to+"\n") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, pgtest.Options{HBA: secured})
			s.encrypted("first")
			s.dsn = strings.Replace(s.dsn, "app:first@", "app@", 1)
			replace := source(s)
			rotate := func(to string) {
				t.Helper()
				s.do(fmt.Sprintf("ALTER ROLE app PASSWORD '%s'", to))
				replace(to)
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
		})
	}
}

// rewrite replaces a file in one step, as tools that rotate secrets do.
func (s *site) rewrite(file, content string) {
	s.Helper()
	if err := os.WriteFile(file+".new", []byte(content), 0o600); err != nil {
		s.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		s.Fatal(err)
	}
}
