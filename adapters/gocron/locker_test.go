package gocron_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	tenuregocron "github.com/exactly-one/tenure/adapters/gocron"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/tenuretest"
)

// TestLockerRunsEachTickOnce: while the sessions of nodes are killed in the middle of
// jobs, no tick runs twice.
func TestLockerRunsEachTickOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	config := tenuregocron.LockerConfig{MinInterval: 2 * time.Second} // a busy machine answers within half of it
	for i := range nodes {
		f.locker(i, config)
	}
	const ticks = 8
	for i := range ticks {
		f.tick(func() {
			if i%2 == 1 {
				f.killLeader("gocron/report")
			}
		})
		awaitInterval(f.Installation, config.MinInterval)
	}
	byTick := f.check("gocron/report")
	for tick, runs := range byTick {
		if len(runs) > 1 {
			t.Errorf("the tick %v ran %d times", tick, len(runs))
		}
	}
	if len(byTick) < ticks/2 {
		t.Errorf("%d of %d ticks ran; want all where no session was killed", len(byTick), ticks)
	}
}

// TestLockerSkipsTicksOfLateClocks: another node that is late by less than the interval
// does not run the job again, and runs the next.
func TestLockerSkipsTicksOfLateClocks(t *testing.T) {
	t.Parallel()
	i := postgrestest.New(t)
	const interval = 5 * time.Second
	var lockers [2]*tenuregocron.Locker
	for n, name := range []string{"early", "late"} {
		l, err := tenuregocron.NewLocker(i.Node(name, tenure.Config{}), tenuregocron.LockerConfig{MinInterval: interval})
		if err != nil {
			t.Fatal(err)
		}
		lockers[n] = l
	}
	lock, err := lockers[0].Lock(t.Context(), "report")
	if err != nil {
		t.Fatal(err)
	}
	for n, l := range lockers {
		if _, err := l.Lock(t.Context(), "report"); !errors.Is(err, tenure.ErrHeld) {
			t.Errorf("lock %d during the run: %v; want ErrHeld", n, err)
		}
	}
	if err := lock.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := lockers[1].Lock(t.Context(), "report"); !errors.Is(err, tenure.ErrHeld) {
		t.Errorf("lock a moment after the run: %v; want ErrHeld", err)
	}
	awaitInterval(i, interval)
	lock, err = lockers[1].Lock(t.Context(), "report")
	if err != nil {
		t.Fatalf("lock at the next tick: %v", err)
	}
	if err := lock.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

// Between two runs the role needs no leader: it is at rest, not vacant.
func TestLockerLeavesRoleAtRest(t *testing.T) {
	t.Parallel()
	i := postgrestest.New(t)
	backend := i.NewBackend()
	l, err := tenuregocron.NewLocker(postgrestest.OpenNode(t, backend, tenure.Config{Name: "api-1"}), tenuregocron.LockerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	lock, err := l.Lock(t.Context(), "report")
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	terms, err := backend.History(t.Context(), history.Query{Role: "gocron/report"})
	if err != nil {
		t.Fatal(err)
	}
	if len(terms) != 1 || terms[0].Reason != history.EndCompleted || terms[0].NextBy != (time.Time{}) {
		t.Errorf("after the run: terms %+v; want one that was completed, with no limit for the next", terms)
	}
}

// A clock that was set back by more than the interval does not stop a job.
func TestLockerRunsAfterClockWasSetBack(t *testing.T) {
	t.Parallel()
	i := postgrestest.New(t)
	l, err := tenuregocron.NewLocker(i.Node("api-1", tenure.Config{}), tenuregocron.LockerConfig{MinInterval: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		lock, err := l.Lock(t.Context(), "report")
		if err != nil {
			t.Fatalf("lock %d: %v", n, err)
		}
		if err := lock.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		i.Exec(`UPDATE ` + pgx.Identifier{i.Schema, "tenure_terms"}.Sanitize() + ` SET acquired_at = acquired_at + interval '1 hour'`)
	}
}

func TestLockerRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	node := postgrestest.OpenNode(t, tenuretest.NewDatabase(), tenure.Config{})
	if _, err := tenuregocron.NewLocker(node, tenuregocron.LockerConfig{}); !errors.Is(err, tenure.ErrUnsupported) {
		t.Errorf("a backend without a history: %v; want ErrUnsupported", err)
	}
	if _, err := tenuregocron.NewLocker(node, tenuregocron.LockerConfig{MinInterval: 1}); !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Errorf("an interval of 1 ns: %v; want ErrInvalidConfig", err)
	}
	l, err := tenuregocron.NewLocker(postgrestest.New(t).Node("api-1", tenure.Config{}), tenuregocron.LockerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Lock(t.Context(), "a\nb"); !errors.Is(err, tenure.ErrInvalidRole) {
		t.Errorf("a name with a line break: %v; want ErrInvalidRole", err)
	}
	job := l.Task("report", func(context.Context, *tenure.Term) error { return errors.New("the job ran") })
	if err := job(t.Context()); !errors.Is(err, tenure.ErrNotLeader) {
		t.Errorf("a task without a lock: %v; want ErrNotLeader", err)
	}
}
