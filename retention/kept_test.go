package retention_test

import (
	"fmt"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/retention"
)

// A compactor without settings keeps rows for 90 days: those of 91 days go, and those of
// 89 days stay. Only inserted rows can be that old.
func TestRowsAreKeptFor90Days(t *testing.T) {
	t.Parallel()
	i := postgrestest.New(t, "schedules", "changes")
	s := world{i, i.Node("a", tenure.Config{})}
	for term, age := range []string{"91 days", "89 days"} {
		s.Exec(fmt.Sprintf(`
INSERT INTO {history} (role, term, node_id, node_name, incarnation, acquired_at, ended_at, end_reason)
VALUES ('billing', %[2]d, gen_random_uuid(), 'a', 1, now() - interval '%[1]s' - interval '1 minute', now() - interval '%[1]s', 'resigned')`, age, term+1))
		s.Exec(fmt.Sprintf(`
INSERT INTO {node_history} (at, node_id, node_name, incarnation, status, previous)
SELECT now() - interval '%s', gen_random_uuid(), 'old', 1, 'left', 'active'`, age))
		s.Exec(fmt.Sprintf(`
INSERT INTO {runs} (schedule, scheduled_for, state, ticks, claimed_at, started_at, ended_at)
SELECT 'invoices', at, 'succeeded', 1, at, at, at + interval '2 seconds' FROM (SELECT now() - interval '%s' AS at) age`, age))
		s.Exec(fmt.Sprintf(`
INSERT INTO {changes} (at, changed_by, kind, name, action)
SELECT now() - interval '%s', 'ann', 'schedule', 'invoices', 'pause'`, age))
	}
	compactor, err := retention.New(s.node, s.Pool, retention.Config{})
	if err != nil {
		t.Fatal(err)
	}
	postgrestest.Run(t, compactor.Run)
	for what, rows := range map[string]string{
		"terms":            `{history} WHERE role = 'billing' AND ended_at`,
		"changes of nodes": `{node_history} WHERE node_name = 'old' AND at`,
		"runs":             `{runs} WHERE claimed_at`,
		"manual changes":   `{changes} WHERE at`,
	} {
		s.Await(what+" older than 90 days are rolled up", func() bool {
			return s.count(`SELECT count(*) FROM `+rows+` < now() - interval '90 days'`) == 0
		})
		if n := s.count(`SELECT count(*) FROM ` + rows + ` < now() - interval '88 days'`); n != 1 {
			t.Errorf("%d %s of 89 days are kept, want 1: rows are kept for 90 days", n, what)
		}
	}
}
