package managed_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/retry"
)

// fewTries gives up after some attempts.
var fewTries = retry.Func(func(f retry.Failure) (time.Duration, bool) { return 10 * time.Millisecond, f.Attempt < 3 })

// A server without free connections refuses new nodes and keeps the leader. When
// one is free, the waiting node opens.
func TestLeaderSurvivesExhaustedConnections(t *testing.T) {
	t.Parallel()
	s := newSite(t, pgtest.Options{Settings: map[string]string{"max_connections": "25"}})
	leader := s.join("leader")
	_, term := s.nextTerm(0, leader)
	standby := s.join("standby")

	var taken []*pgx.Conn
	for {
		conn, err := pgx.Connect(t.Context(), s.dsn)
		if err != nil {
			if !strings.Contains(err.Error(), "53300") {
				t.Fatal(err)
			}
			break
		}
		taken = append(taken, conn)
	}
	if _, err := s.open("refused", fewTries); !errors.Is(err, tenure.ErrConnection) || !strings.Contains(err.Error(), "53300") {
		t.Errorf("a node without a free connection: %v; want ErrConnection with SQLSTATE 53300", err)
	}
	since := time.Now()
	s.await("some leases", func() bool { return time.Since(since) > 2*lease || !term.Valid() })
	if !term.Valid() {
		t.Error("the term ended while other programs used all connections")
	}
	s.endSession(leader) // its place is taken by the leader or the standby again
	_, next := s.nextTerm(term.Number(), leader, standby)
	for _, conn := range taken {
		if err := conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	late := s.join("late")
	for _, n := range []*node{leader, standby} {
		s.await(n.Name()+" has a session again", func() bool { return s.hasSession(n) })
	}
	s.endSession(standby)
	s.endSession(leader)
	s.nextTerm(next.Number(), leader, standby, late)
}

// Nodes of several users, none of whom may end the sessions of the others: the
// second is refused with the statement that allows it.
func TestUserThatCannotTerminateOthersIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, pgtest.Options{}, "CREATE ROLE other LOGIN", "GRANT ALL ON DATABASE app TO other")
	leader := s.join("leader")
	s.nextTerm(0, leader)
	admin := pgtest.Conn(t, s.server.DSNFor("postgres", "app"))
	if _, err := admin.Exec(t.Context(), "GRANT ALL ON SCHEMA public TO other; GRANT ALL ON ALL TABLES IN SCHEMA public TO other; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO other"); err != nil {
		t.Fatal(err)
	}
	stranger := *s
	stranger.dsn = s.server.DSNFor("other", "app")
	_, err := stranger.open("stranger", fewTries)
	if !errors.Is(err, dberr.ErrPrivilege) || !strings.Contains(err.Error(), "GRANT") {
		t.Fatalf("%v; want ErrPrivilege and the statement", err)
	}
	s.do("GRANT pg_signal_backend, pg_read_all_stats TO other")
	second := stranger.join("second")
	_, term := s.nextTerm(0, leader, second)
	s.endSession(leader)
	s.nextTerm(term.Number(), leader, second)
}
