package retention_test

import (
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/retention"
)

// stateOf returns the recorded state of a kind of rows; zero if there is none.
func (s world) stateOf(kind string) retention.Status {
	s.Helper()
	all, err := retention.List(s.Context(), s.Backend, s.Pool)
	if err != nil {
		s.Fatal(err)
	}
	for _, state := range all {
		if state.Rows == kind {
			return state
		}
	}
	return retention.Status{}
}

// A compactor that may not delete runs any longer records the error, since when, and how
// often, and continues with the other rows. Its next success clears the record.
func TestRevokedPrivilegeIsRecorded(t *testing.T) {
	t.Parallel()
	i, server := postgrestest.New(t, "schedules", "changes", "processors", "rollups"), pgtest.Shared(t)
	s := world{i, i.Node("a", tenure.Config{})}
	user := s.compactionUser("rollups", "schedules", "changes", "processors")
	s.Exec(`REVOKE DELETE ON {runs} FROM ` + user)
	s.fillOld(100)
	compactor, err := retention.New(s.node, pgtest.Pool(t, server.DSNFor(user, "postgres")), retention.Config{
		Role: tenure.NamedRole("compactor"), Interval: 20 * time.Millisecond, Pause: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	postgrestest.Run(t, compactor.Run)
	s.Await("two searches have failed", func() bool { return s.stateOf("runs").Errors >= 2 })
	failing := s.stateOf("runs")
	if !strings.Contains(failing.LastError, "permission denied") || failing.FailingSince.IsZero() || !failing.SweptAt.IsZero() {
		t.Errorf("the state of runs is %+v; want the refusal and since when", failing)
	}
	if want := 10 * 24 * time.Hour; failing.Late < want-time.Minute || failing.Late > want || failing.Keep != 90*24*time.Hour {
		t.Errorf("runs of 100 days are late by %v, and kept for %v; want 10 and 90 days", failing.Late, failing.Keep)
	}
	s.Await("the other rows are removed", func() bool { return s.count(kept[1].sql)+s.count(kept[2].sql)+s.count(kept[3].sql) == 0 })
	s.Await("other searches have succeeded", func() bool { return !s.stateOf("terms").SweptAt.IsZero() })
	if state := s.stateOf("terms"); state.Errors > 0 || state.LastError != "" || state.Late > 0 {
		t.Errorf("the state of terms is %+v; want no error", state)
	}

	s.Exec(`GRANT DELETE ON {runs} TO ` + user)
	s.Await("a search for runs succeeds", func() bool { return !s.stateOf("runs").SweptAt.IsZero() })
	if state := s.stateOf("runs"); state.Errors > 0 || state.LastError != "" || !state.FailingSince.IsZero() || state.Late > 0 {
		t.Errorf("after a success, the state of runs is %+v; want no error", state)
	}
}

// A missing column is recorded too.
func TestMissingColumnIsRecorded(t *testing.T) {
	t.Parallel()
	i := postgrestest.New(t, "schedules", "changes", "processors")
	s := world{i, i.Node("a", tenure.Config{})}
	s.Exec(`ALTER TABLE {changes} DROP COLUMN at CASCADE`)
	compactor, err := retention.New(s.node, s.Pool, retention.Config{Role: tenure.NamedRole("compactor")})
	if err != nil {
		t.Fatal(err)
	}
	postgrestest.Run(t, compactor.Run)
	recorded := func() string {
		return postgrestest.Value[string](i, `SELECT coalesce((SELECT last_error FROM {rollup_states} WHERE kind = 'changes by hand'), '')`)
	}
	s.Await("the rollups are there", func() bool {
		return postgrestest.Value[bool](i, `SELECT to_regclass('{schema}.tenure_rollup_states') IS NOT NULL`)
	})
	s.Await("the error is recorded", func() bool { return recorded() != "" })
	if got := recorded(); !strings.Contains(got, "at") {
		t.Errorf("recorded %q; want the missing column", got)
	}
}

// A compactor whose server session ends within every third batch counts every row once.
func TestTotalsAreRightAfterCrashes(t *testing.T) {
	t.Parallel()
	i := postgrestest.New(t, "schedules", "changes", "processors", "rollups")
	s := world{i, i.Node("a", tenure.Config{})}
	const runs = 3000
	s.fillOld(runs)
	s.Exec(`CREATE SEQUENCE {schema}.batches`)
	s.Exec(`CREATE FUNCTION {schema}.crash() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('{schema}.batches') % 3 = 2 THEN
        PERFORM pg_terminate_backend(pg_backend_pid());
    END IF;
    RETURN NULL;
END $$`)
	s.Exec(`CREATE TRIGGER crash AFTER INSERT OR UPDATE ON {run_days} FOR EACH STATEMENT EXECUTE FUNCTION {schema}.crash()`)
	compactor, err := retention.New(s.node, s.Pool, retention.Config{
		Role: tenure.NamedRole("compactor"), BatchSize: 100, Interval: time.Millisecond, Pause: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	postgrestest.Run(t, compactor.Run)
	s.Await("all runs are rolled up", func() bool {
		now := postgrestest.Value[[]int](i, `SELECT ARRAY[(SELECT count(*) FROM {runs}), (SELECT coalesce(sum(succeeded), 0) FROM {run_days})]`)
		if now[0]+now[1] != runs {
			t.Fatalf("%d runs are kept and %d counted; want %d together", now[0], now[1], runs)
		}
		return now[0] == 0
	})
	if n := s.count(`SELECT last_value FROM {schema}.batches`); n < runs/100*5/4 {
		t.Errorf("%d batches began; want more than %d: a crash repeats its batch", n, runs/100)
	}
}
