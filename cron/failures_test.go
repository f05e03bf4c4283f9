package cron_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// A leader that cannot work says so in the rows of its schedules, until it works.
func TestLeaderThatCannotWorkIsRecorded(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct{ breaks, mends, says string }{
		"a missing column": {
			`ALTER TABLE {runs} RENAME COLUMN retry_at TO retried`, `ALTER TABLE {runs} RENAME COLUMN retried TO retry_at`, `column r.retry_at does not exist`,
		},
		"a missing table": {`ALTER TABLE {runs} RENAME TO gone`, `ALTER TABLE {schema}.gone RENAME TO tenure_runs`, `does not exist`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.run(w.Node("a", tenure.Config{}), cron.Config{PollInterval: 50 * time.Millisecond}, cron.Schedule{Name: "job", Expression: never, Job: nothing})
			w.trigger("job")
			w.Exec(fault.breaks)
			failing := func() (n int) {
				return one[int](w, `SELECT count(*)::integer FROM {schedules} WHERE errors > 0 AND failing_since IS NOT NULL AND last_error LIKE '%' || $1 || '%'`, fault.says)
			}
			w.Await("that the failure is recorded", func() bool { return failing() == 1 })
			w.Exec(fault.mends)
			w.Await("that it is over", func() bool {
				s, err := w.management.Show(t.Context(), "job")
				return err == nil && s.Errors == 0 && s.LastError == "" && s.FailingSince.IsZero()
			})
		})
	}
}

// A leader without the privilege to read the runs records that.
func TestRevokedPrivilegeIsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	user := w.worker()
	w.pool = pgtest.Pool(t, w.Server.DSNFor(user, "postgres")) // the scheduler's; the reader's is the owner's
	w.run(w.Node("a", tenure.Config{}), cron.Config{PollInterval: 50 * time.Millisecond}, cron.Schedule{Name: "job", Expression: never, Job: nothing})
	w.Await("the schedule", func() bool { s, err := w.management.List(t.Context()); return err == nil && len(s) == 1 && s[0].Loaded })
	w.Exec("REVOKE SELECT ON {runs} FROM " + pgx.Identifier{user}.Sanitize())
	w.Await("that the failure is recorded", func() bool {
		s, err := w.management.Show(t.Context(), "job")
		return err == nil && s.Errors > 0 && !s.FailingSince.IsZero() && s.LastError != ""
	})
	w.Exec("GRANT SELECT ON {runs} TO " + pgx.Identifier{user}.Sanitize())
	w.Await("that it is over", func() bool {
		s, err := w.management.Show(t.Context(), "job")
		return err == nil && s.Errors == 0
	})
}

// What an operator set and this program cannot use is recorded for that schedule alone.
func TestInvalidOverrideIsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(w.Node("a", tenure.Config{}), cron.Config{PollInterval: 50 * time.Millisecond},
		cron.Schedule{Name: "job", Expression: never, Job: nothing}, cron.Schedule{Name: "other", Expression: never, Job: nothing})
	w.trigger("job")
	// Set by hand: an operator's machine knows a zone that this one does not.
	w.Exec(`UPDATE {schedules} SET override = '{"timezone": "Mars/Olympus"}' WHERE name = 'job'`)
	w.Await("that the failure is recorded", func() bool {
		return one[int](w, `SELECT count(*)::integer FROM {schedules} WHERE name = 'job' AND last_error LIKE '%Mars/Olympus%'`) == 1
	})
	if n := one[int](w, `SELECT count(*)::integer FROM {schedules} WHERE name = 'other' AND failing_since IS NOT NULL`); n != 0 {
		t.Error("the other schedule fails too")
	}
	if err := w.management.Reset(t.Context(), "job", "ann"); err != nil {
		t.Fatal(err)
	}
	w.Await("that it is over", func() bool {
		s, err := w.management.Show(t.Context(), "job")
		return err == nil && s.Errors == 0 && s.Loaded
	})
}

// A schedule whose tick is not handled is overdue, whatever the reason.
func TestUnhandledTickMakesScheduleOverdue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.known(3*time.Minute, cron.Schedule{Name: "job", Expression: "* * * * *"}, cron.Schedule{Name: "paused", Expression: "* * * * *"})
	w.known(30*time.Second, cron.Schedule{Name: "fresh", Expression: "* * * * *"})
	w.ok(w.management.Pause(t.Context(), "paused", "ann"))
	for name, want := range map[string]bool{"job": true, "paused": false, "fresh": false} {
		if s := w.show(name); (s.Overdue > time.Minute) != want || s.Overdue > 4*time.Minute {
			t.Errorf("the schedule %s is overdue by %v; want it to be overdue: %v", name, s.Overdue, want)
		}
	}
}
