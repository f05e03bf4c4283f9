package cron_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/tenuretest"
)

// Changes over another connection take effect after their notification, not at
// the next poll.
func TestAdminChangesTakeEffectImmediately(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	runs := make(chan cron.Run, 100)
	report := func(_ context.Context, run cron.Run) error { runs <- run; return nil }
	w.run(w.Node("a", tenure.Config{}), cron.Config{PollInterval: time.Hour},
		cron.Schedule{Name: "rare", Expression: never, Zone: "Europe/Berlin", Job: report, Timeout: time.Minute, Jitter: 1500 * time.Millisecond},
		cron.Schedule{Name: "often", Expression: "@every 1s", Job: report})
	<-runs

	if err := w.management.Pause(t.Context(), "often", "ann"); err != nil {
		t.Fatal(err)
	}
	claimed := one[int](w, `SELECT count(*) FROM {runs}`)
	id := w.trigger("rare")
	run := <-runs
	for run.Schedule == "often" { // claimed before the pause
		run = <-runs
	}
	took := one[float64](w, `SELECT 1000 * extract(epoch FROM started_at - claimed_at)::double precision FROM {runs} WHERE id = $1`, id)
	t.Logf("the run began %.1f ms after it was asked for", took)
	if run.ID != id || !run.Manual || run.RequestedBy != "test" || run.Attempt != 1 {
		t.Errorf("the job was given %+v", run)
	}
	paused := w.trigger("often")
	if run := <-runs; run.ID != paused {
		t.Errorf("the run %d came; want %d, which was asked for while paused", run.ID, paused)
	}
	if n := one[int](w, `SELECT count(*) FROM {runs} WHERE NOT manual`); n != claimed {
		t.Errorf("%d ticks were claimed while paused", n-claimed)
	}

	statuses, err := w.management.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	often, rare := statuses[0], statuses[1]
	if !often.Paused || !often.Next.IsZero() || often.Name != "often" || often.Last == nil || often.Last.ID != paused {
		t.Errorf("the paused schedule is %+v", often)
	}
	if rare.Paused || rare.Next.Day() != 29 || rare.Role != "scheduler" || !rare.Loaded || rare.Zone != "Europe/Berlin" ||
		rare.Timeout != time.Minute || rare.Jitter != 1500*time.Millisecond || rare.Overlap != cron.OverlapSkip || rare.Policy != cron.AtMostOnce {
		t.Errorf("the other schedule is %+v", rare)
	}

	until := one[time.Time](w, `SELECT clock_timestamp()`)
	for range 2 { // the second changes nothing
		if err := w.management.Resume(t.Context(), "often", "bob"); err != nil {
			t.Fatal(err)
		}
	}
	if run := <-runs; run.Manual || !run.ScheduledFor.After(until) {
		t.Errorf("after the pause the tick of %v ran; want one after %v", run.ScheduledFor, until)
	}
	w.wantChanges("", "bob often resume ", fmt.Sprintf("test often trigger run %d", paused), fmt.Sprintf("test rare trigger run %d", id), "ann often pause ")
	w.wantChanges("rare", fmt.Sprintf("test rare trigger run %d", id))
}

func TestAdminNextReturnsTicks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.known(0, cron.Schedule{Name: "daily", Expression: "30 2 * * *", Zone: "America/New_York"})
	ticks, err := w.management.Next(t.Context(), "daily", 3)
	if err != nil {
		t.Fatal(err)
	}
	if len(ticks) != 3 || ticks[0].Location().String() != "America/New_York" || !ticks[0].Before(ticks[1]) || !ticks[1].Before(ticks[2]) {
		t.Errorf("the next ticks are %v", ticks)
	}
	w.known(0, cron.Schedule{Name: "elsewhere", Expression: "30 2 * * *", Zone: "Mars/Olympus"})
	statuses, err := w.management.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if statuses[0].Problem != nil || statuses[1].Problem == nil {
		t.Errorf("the problems are %v and %v", statuses[0].Problem, statuses[1].Problem)
	}
}

func TestAdminReportsUnknownSchedules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, ctx := w.management, t.Context()
	check := func(known ...string) {
		t.Helper()
		for what, ask := range map[string]func() error{
			"next":    func() error { _, err := m.Next(ctx, "invoice", 1); return err },
			"history": func() error { _, err := m.History(ctx, "invoice", 1); return err },
			"trigger": func() error { _, err := m.Trigger(ctx, "invoice", "test"); return err },
			"pause":   func() error { return m.Pause(ctx, "invoice", "test") },
			"resume":  func() error { return m.Resume(ctx, "invoice", "test") },
			"remove":  func() error { return m.Remove(ctx, "invoice", "test") },
			"changes": func() error { _, err := m.Changes(ctx, "invoice", 1); return err },
		} {
			var unknown *cron.UnknownError
			err := ask()
			if !errors.As(err, &unknown) || !errors.Is(err, tenure.ErrInvalidConfig) || !slices.Equal(unknown.Known, known) {
				t.Errorf("%s: %v; want the names %q", what, err, known)
			}
		}
	}
	check([]string{}...)
	w.known(0, cron.Schedule{Name: "invoices", Expression: never}, cron.Schedule{Name: "backup", Expression: never})
	check("backup", "invoices")
	if records, err := m.History(ctx, "invoices", 10); err != nil || len(records) != 0 {
		t.Errorf("the history of a schedule that never ran is %v, %v", records, err)
	}
	for what, err := range map[string]error{
		"no requester pauses":  m.Pause(ctx, "invoices", ""),
		"no requester removes": m.Remove(ctx, "invoices", ""),
		"no history":           func() error { _, err := m.History(ctx, "invoices", 0); return err }(),
		"no changes":           func() error { _, err := m.Changes(ctx, "invoices", 0); return err }(),
	} {
		if !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAddRejectsInvalidSchedules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	scheduler, err := cron.New(w.Node("a", tenure.Config{}), w.pool, cron.Config{Role: tenure.NamedRole("scheduler")})
	if err != nil {
		t.Fatal(err)
	}
	good := cron.Schedule{Name: "good", Expression: "@daily", Job: nothing}
	if err := scheduler.Add(good); err != nil {
		t.Fatal(err)
	}
	for reason, change := range map[string]func(*cron.Schedule){
		"already has":                    func(*cron.Schedule) {},
		"name":                           func(s *cron.Schedule) { s.Name = "" },
		"no job":                         func(s *cron.Schedule) { s.Job = nil },
		"never ticks":                    func(s *cron.Schedule) { s.Expression = "0 0 30 2 *" },
		"time zone":                      func(s *cron.Schedule) { s.Zone = "Mars/Olympus" },
		"catch-up of":                    func(s *cron.Schedule) { s.CatchUp = "some" },
		"overlap":                        func(s *cron.Schedule) { s.Overlap = "maybe" },
		"policy":                         func(s *cron.Schedule) { s.Policy = "exactly_once" },
		"catch-up limit":                 func(s *cron.Schedule) { s.CatchUpLimit = -1 },
		"jitter":                         func(s *cron.Schedule) { s.Jitter = 25 * time.Hour },
		"the timeout of bad is 2562047h": func(s *cron.Schedule) { s.Timeout = math.MaxInt64 }, // its row would have a negative one
		"timeout":                        func(s *cron.Schedule) { s.Timeout = -1 },
		"not a duration such as":         func(s *cron.Schedule) { s.Expression = "@every day" },
	} {
		bad := good
		if reason != "already has" {
			bad.Name = "bad"
		}
		change(&bad)
		if err := scheduler.Add(bad); !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%v; want an error with %q", err, reason)
		}
	}
	for _, config := range []cron.Config{{Grace: -1}, {PollInterval: -1}} {
		if _, err := cron.New(w.Node("b", tenure.Config{}), w.pool, config); !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%+v: %v", config, err)
		}
	}
}

func TestNewSchedulerRejectsOtherBackends(t *testing.T) {
	t.Parallel()
	node, err := tenure.Open(t.Context(), tenuretest.NewDatabase(), tenure.Config{Name: "a", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := node.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	if _, err := cron.New(node, nil, cron.Config{}); !errors.Is(err, tenure.ErrUnsupported) {
		t.Errorf("%v; want ErrUnsupported", err)
	}
}

// worker returns a database user that has the privileges of WorkGrants.
func (w *world) worker() (user string) {
	w.Helper()
	user = w.Schema + "_worker"
	name := pgx.Identifier{user}.Sanitize()
	w.Exec(`CREATE ROLE ` + name + ` LOGIN`)
	w.Cleanup(func() {
		if _, err := w.Pool.Exec(context.Background(), `DROP OWNED BY `+name+`; DROP ROLE `+name); err != nil {
			w.Error(err)
		}
	})
	grants, err := w.Backend.WorkGrants(user, "schedules")
	if err != nil {
		w.Fatal(err)
	}
	w.Exec(grants)
	return user
}

// A scheduler's pool needs only the privileges of WorkGrants.
func TestWorkGrantsSuffice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool = pgtest.Pool(t, w.Server.DSNFor(w.worker(), "postgres"))
	w.management = cron.NewAdmin(w.Backend, w.pool)
	w.run(w.Node("a", tenure.Config{}), cron.Config{}, cron.Schedule{
		Name: "invoices", Expression: "@every 1s", Policy: cron.AtLeastOnce, Job: func(ctx context.Context, run cron.Run) error {
			return run.InTx(ctx, func(pgx.Tx) error { return nil })
		},
	})
	run := w.trigger("invoices")
	w.Await("the run", func() bool {
		records, err := w.management.History(t.Context(), "invoices", 10)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(records, func(r cron.Record) bool { return r.ID == run && r.State == cron.Succeeded })
	})
	if err := w.management.Pause(t.Context(), "invoices", "test"); err != nil {
		t.Fatalf("pausing with the granted privileges: %v", err)
	}
}

// Failures in a row end at the last success, and skipped or waiting runs do not count.
func TestStatusCountsFailuresInRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.known(0, cron.Schedule{Name: "report", Expression: never})
	failed := func(want int64, states ...cron.State) {
		t.Helper()
		w.Exec("DELETE FROM {runs}")
		for i, state := range states {
			w.Exec(`INSERT INTO {runs} (schedule, scheduled_for, state) VALUES ('report', now() + ($1 - 100) * interval '1 hour', $2)`, i, string(state))
		}
		if s := w.show("report"); s.FailedInRow != want {
			t.Errorf("after %v: %d failures in a row; want %d", states, s.FailedInRow, want)
		}
	}
	failed(0)
	failed(0, cron.Failed, cron.Succeeded)
	failed(2, cron.Failed, cron.Failed)
	failed(3, cron.Failed, cron.Succeeded, cron.Failed, cron.TimedOut, cron.Skipped, cron.Panicked, cron.Waiting)
}
