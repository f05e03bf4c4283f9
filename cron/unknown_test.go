package cron_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/postgres"
)

// unacknowledged is a database that calls committed after each commit, and reports an
// error for those after which it returns true.
type unacknowledged struct {
	postgres.Database

	committed func() bool
}

type unacknowledgedTx struct {
	pgx.Tx

	database *unacknowledged
}

func (u *unacknowledged) BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error) {
	tx, err := u.Database.BeginTx(ctx, options)
	return unacknowledgedTx{tx, u}, err
}

func (tx unacknowledgedTx) Commit(ctx context.Context) error {
	err := tx.Tx.Commit(ctx)
	if err == nil && tx.database.committed() {
		return errUnsure
	}
	return err
}

// A run that was claimed by a commit without an acknowledgment starts, although an
// operator changes its schedule before the leader reads it again.
func TestUnknownClaimOutlivesChangeOfSchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var changed atomic.Bool
	database := &unacknowledged{w.pool, func() bool {
		if changed.Load() || one[int](w, `SELECT count(*) FROM {runs} WHERE state = 'running'`) == 0 {
			return false
		}
		changed.Store(true)
		w.ok(w.management.Change(context.Background(), "rare", cron.Override{Zone: "Asia/Kathmandu"}, "ann"))
		return true
	}}
	scheduler, err := cron.New(w.Node("a", tenure.Config{}), database, cron.Config{Role: tenure.NamedRole("scheduler")})
	if err != nil {
		t.Fatal(err)
	}
	var began atomic.Int64
	w.ok(scheduler.Add(cron.Schedule{Name: "rare", Expression: never, Job: func(context.Context, cron.Run) error {
		began.Add(1)
		return nil
	}}))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- scheduler.Run(ctx) }()
	w.trigger("rare")
	w.Await("the end of the run", func() bool {
		return one[int](w, `SELECT count(*) FROM {runs} WHERE state NOT IN ('waiting', 'running')`) == 1
	})
	if states := w.states("rare"); states[cron.Succeeded] != 1 || began.Load() != 1 {
		t.Errorf("the run is %v and began %d times", states, began.Load())
	}
	cancel()
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
