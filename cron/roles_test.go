package cron_test

import (
	"context"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// Two roles take over one schedule at the same moment. The second one sees the
// other's term, even if it began while the second waited for the row.
func TestConcurrentTakeoverSeesTermOfOtherRole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shared, mine := cron.Schedule{Name: "shared", Expression: never, Job: nothing}, cron.Schedule{Name: "mine", Expression: never, Job: nothing}
	w.known(time.Second, shared)
	admin := w.Server.Conn(t)
	tx, err := admin.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	update := func(term int64) {
		t.Helper()
		pgtest.Exec(t, tx, pgtest.SQL(w.Backend, "UPDATE {schedules} SET role = 'other', term = $1 WHERE name = 'shared'"), term)
	}
	update(0)
	w.run(w.Node("a", tenure.Config{}), cron.Config{PollInterval: 50 * time.Millisecond}, shared, mine)
	w.Await("the first scheduler to wait for the row", func() bool {
		return one[bool](w, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))", int32(admin.PgConn().PID()))
	})
	election, err := w.Node("b", tenure.Config{}).Election(tenure.NamedRole("other"))
	if err != nil {
		t.Fatal(err)
	}
	term, err := election.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := term.Resign(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	update(term.Number())
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Await("the first scheduler", func() bool {
		return one[bool](w, "SELECT EXISTS (SELECT FROM {schedules} WHERE name = 'mine' AND term > 0)")
	})
	if role := one[string](w, "SELECT role FROM {schedules} WHERE name = 'shared'"); role != "other" {
		t.Errorf("the schedule was taken over by the role %s while the other one was led", role)
	}
}
