package retention_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/retention"
)

// A compactor needs only the privileges that CompactionGrants prints.
func TestCompactionGrantsSuffice(t *testing.T) {
	t.Parallel()
	s, server := newWorld(t), pgtest.Shared(t)
	s.Exec(`
INSERT INTO {history} (role, term, node_id, node_name, incarnation, acquired_at, ended_at, end_reason)
SELECT 'billing', 1, gen_random_uuid(), 'a', 1, at, at, 'resigned' FROM (SELECT now() - interval '2 hours' AS at) old`)
	s.Exec(`DELETE FROM {node_history}`) // the oldest come first
	s.Exec(`
INSERT INTO {node_history} (at, node_id, node_name, incarnation, status, previous)
VALUES (now() - interval '2 hours', gen_random_uuid(), 'a', 1, 'active', '')`)
	s.Exec(`
INSERT INTO {runs} (schedule, scheduled_for, state, ticks, claimed_at, started_at, ended_at)
SELECT 'nightly', at, 'succeeded', 1, at, at, at FROM (SELECT now() - interval '2 hours' AS at) old`)
	s.Exec(`
INSERT INTO {changes} (at, changed_by, kind, name, action)
VALUES (now() - interval '2 hours', 'ann', 'schedule', 'nightly', 'pause')`)

	if err := s.Backend.Migrate(t.Context(), "rollups"); err != nil { // the user may not
		t.Fatal(err)
	}
	user := s.compactionUser("rollups", "schedules")
	compactor, err := retention.New(s.node, pgtest.Pool(t, server.DSNFor(user, "postgres")), retention.Config{
		Keep: time.Hour, Role: tenure.NamedRole("compactor"), // the default role has one lock in this database
	})
	if err != nil {
		t.Fatal(err)
	}
	stop := postgrestest.Run(t, compactor.Run)
	old := `
SELECT (SELECT count(*) FROM {history})
    + (SELECT count(*) FROM {node_history})
    + (SELECT count(*) FROM {runs})
    + (SELECT count(*) FROM {changes})`
	s.Await("no old rows are left", func() bool { return s.count(old) == 0 })
	stop()
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
	s.Exec("CREATE ROLE " + user + " LOGIN")
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err := pgtest.Conn(s, server.DSN()).Exec(ctx, "DROP OWNED BY "+user+"; DROP ROLE "+user, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			s.Error(err)
		}
	})
	grants, err := s.Backend.CompactionGrants(user, features...)
	if err != nil {
		s.Fatal(err)
	}
	pgtest.Exec(s, s.Pool, grants, pgx.QueryExecModeSimpleProtocol)
	return user
}
