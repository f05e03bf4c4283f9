package retention_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/retention"
)

// A compactor needs only the privileges that CompactionGrants prints.
func TestCompactionGrantsSuffice(t *testing.T) {
	t.Parallel()
	s, server := newWorld(t), pgtest.Shared(t)
	s.exec(`
INSERT INTO {history} (role, term, node_id, node_name, incarnation, acquired_at, ended_at, end_reason)
SELECT 'billing', 1, gen_random_uuid(), 'a', 1, at, at, 'resigned' FROM (SELECT now() - interval '2 hours' AS at) old`)
	s.exec(`DELETE FROM {node_history}`) // the oldest come first
	s.exec(`
INSERT INTO {node_history} (at, node_id, node_name, incarnation, status, previous)
VALUES (now() - interval '2 hours', gen_random_uuid(), 'a', 1, 'active', '')`)
	s.exec(`
INSERT INTO {runs} (schedule, scheduled_for, state, ticks, claimed_at, started_at, ended_at)
SELECT 'nightly', at, 'succeeded', 1, at, at, at FROM (SELECT now() - interval '2 hours' AS at) old`)
	s.exec(`
INSERT INTO {changes} (at, changed_by, kind, name, action)
VALUES (now() - interval '2 hours', 'ann', 'schedule', 'nightly', 'pause')`)

	if err := s.backend.Migrate(t.Context(), "rollups"); err != nil { // the user may not
		t.Fatal(err)
	}
	user := s.compactionUser("rollups", "schedules")
	compactor, err := retention.New(s.node, pgtest.Pool(t, server.DSNFor(user, "postgres")), retention.Config{
		Keep: time.Hour, Role: tenure.NamedRole("compactor"), // the default role has one lock in this database
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- compactor.Run(ctx) }()
	old := `
SELECT (SELECT count(*) FROM {history})
    + (SELECT count(*) FROM {node_history})
    + (SELECT count(*) FROM {runs})
    + (SELECT count(*) FROM {changes})`
	for deadline := time.Now().Add(patience); s.count(old) > 0; {
		if time.Now().After(deadline) {
			t.Fatalf("%d old rows are left", s.count(old))
		}
		<-time.After(5 * time.Millisecond)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, days := range []string{"{term_days}", "{node_days}", "{run_days}"} {
		if s.count("SELECT count(*) FROM "+days) != 1 {
			t.Errorf("nothing was added to %s", days)
		}
	}
}

// compactionUser creates a database user with the privileges of CompactionGrants.
func (s world) compactionUser(features ...string) string {
	s.Helper()
	server := pgtest.Shared(s)
	user := server.Schema(s)
	s.exec("CREATE ROLE " + user + " LOGIN")
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err := pgtest.Conn(s, server.DSN()).Exec(ctx, "DROP OWNED BY "+user+"; DROP ROLE "+user, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			s.Error(err)
		}
	})
	grants, err := s.backend.CompactionGrants(user, features...)
	if err != nil {
		s.Fatal(err)
	}
	if _, err := s.pool.Exec(s.Context(), grants, pgx.QueryExecModeSimpleProtocol); err != nil {
		s.Fatal(err)
	}
	return user
}
