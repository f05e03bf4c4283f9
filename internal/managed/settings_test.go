package managed_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// hostile are limits of a server that would end every session of a node.
func hostile(server *pgtest.Server) map[string]string {
	settings := map[string]string{
		"statement_timeout":                   "1s",
		"lock_timeout":                        "100ms",
		"idle_session_timeout":                "300ms",
		"idle_in_transaction_session_timeout": "200ms",
		"default_transaction_isolation":       "serializable",
		"search_path":                         "",
	}
	if server == nil || server.Major() >= 17 {
		settings["transaction_timeout"] = "1500ms"
	}
	return settings
}

// Nodes hold elections on a server whose limits would end their sessions, whether
// the server, the database or the user has them.
func TestNodesOverrideLimitsOfTheServer(t *testing.T) {
	t.Parallel()
	t.Run("of the server", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, pgtest.Options{})
		s.do("ALTER ROLE postgres SET idle_session_timeout = 0") // this test's own connection
		s.reconnect()
		s.server.Configure(t, hostile(s.server))
		s.await("the limits", func() bool { return s.setting("idle_session_timeout") == "300ms" })
		s.exercise()
	})
	for _, level := range []string{"DATABASE", "ROLE"} {
		t.Run("of the "+strings.ToLower(level), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, pgtest.Options{})
			limits := hostile(s.server)
			limits["default_transaction_read_only"] = "on"
			for name, value := range limits {
				s.do(fmt.Sprintf("ALTER %s app SET %s = '%s'", level, name, value))
			}
			s.exercise()
		})
	}
}

// The limits are changed while nodes live: the leader keeps its term.
func TestTermSurvivesAlterSystem(t *testing.T) {
	t.Parallel()
	s := newSite(t, pgtest.Options{})
	nodes := []*node{s.join("one"), s.join("two")}
	leader, term := s.nextTerm(0, nodes...)
	s.do("ALTER ROLE postgres SET idle_session_timeout = 0")
	s.reconnect()
	for name, value := range hostile(s.server) {
		s.do(fmt.Sprintf("ALTER SYSTEM SET %s = '%s'", name, value))
	}
	s.do("SELECT pg_reload_conf()")
	s.await("the limits", func() bool { return s.setting("idle_session_timeout") == "300ms" })
	since := time.Now()
	s.await("some leases", func() bool { return time.Since(since) > 2*lease || !term.Valid() })
	if !term.Valid() {
		t.Error("the term ended")
	}
	s.endSession(leader)
	s.nextTerm(term.Number(), nodes...)
}

// A service that runs out of storage makes its server read-only: the leader loses
// its term, nodes say how to lift it, and lead again afterwards.
func TestReadOnlyServerRefusesUntilItTakesWrites(t *testing.T) {
	t.Parallel()
	s := newSite(t, pgtest.Options{})
	nodes := []*node{s.join("one"), s.join("two")}
	_, term := s.nextTerm(0, nodes...)
	s.server.Configure(t, map[string]string{"default_transaction_read_only": "on"})
	s.await("the end of the term", func() bool { return !term.Valid() })
	if _, err := s.open("third", fewTries); !errors.Is(err, dberr.ErrReadOnly) || !strings.Contains(err.Error(), "default_transaction_read_only") {
		t.Errorf("a node on a read-only server: %v; want ErrReadOnly and the name of the setting", err)
	}
	s.server.Configure(t, map[string]string{"default_transaction_read_only": "off"})
	s.nextTerm(term.Number(), nodes...)
}

// reconnect opens the connection of the service again, with its new settings.
func (s *site) reconnect() {
	s.Helper()
	s.admin = s.server.Conn(s.T)
}

// setting is what a new connection of the customer starts with.
func (s *site) setting(name string) (value string) {
	s.Helper()
	conn := pgtest.Conn(s.T, s.dsn)
	if err := conn.QueryRow(s.Context(), "SELECT current_setting($1)", name).Scan(&value); err != nil {
		return err.Error()
	}
	return value
}
