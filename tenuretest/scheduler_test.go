package tenuretest_test

// The page docs/howto/test-your-code.md shows what is written here: a scheduler as a user
// would write it, and its tests.

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/tenuretest"
)

var billing = tenure.NamedRole("billing")

// Job is one piece of work under a term.
type Job func(ctx context.Context, term *tenure.Term) error

// Scheduler runs a job every minute on the one node that leads.
type Scheduler struct {
	Election *tenure.Election
	Job      Job
}

// Run runs the job whenever this node leads, until the context ends.
func (s *Scheduler) Run(ctx context.Context) error {
	return s.Election.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
		ticker := time.NewTicker(time.Minute)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				if err := s.Job(ctx, term); err != nil {
					return err
				}
			case <-term.Stopping():
				return nil
			case <-ctx.Done():
				return nil
			}
		}
	})
}

// startScheduler runs a scheduler on its own node until the test ends. It
// returns when the scheduler leads or stands by.
func startScheduler(t *testing.T, db tenure.Backend, name string, job Job) *tenure.Election {
	t.Helper()
	node, err := tenure.Open(t.Context(), db, tenure.Config{Name: name, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	election, err := node.Election(billing)
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- (&Scheduler{Election: election, Job: job}).Run(t.Context()) }()
	t.Cleanup(func() { // by now t.Context() has ended
		if err := errors.Join(<-stopped, node.Close(context.Background())); err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return election
}

func TestOnlyTheLeaderRunsTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		var runs atomic.Int64
		job := func(context.Context, *tenure.Term) error {
			runs.Add(1)
			return nil
		}
		startScheduler(t, db, "a", job)
		startScheduler(t, db, "b", job)

		time.Sleep(time.Hour + time.Second) // takes no real time in the bubble
		if runs.Load() != 60 {
			t.Errorf("the job ran %d times in an hour, want 60", runs.Load())
		}
	})
}

func TestStandbyDoesNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		db.Occupy(billing) // a stranger leads
		election := startScheduler(t, db, "a", func(context.Context, *tenure.Term) error {
			t.Error("the job runs on a standby")
			return nil
		})
		time.Sleep(time.Hour)

		db.Vacate(billing)
		if _, err := election.WaitForLeadership(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestLostLeadershipMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		running, ended := make(chan struct{}), make(chan error, 2)
		job := func(ctx context.Context, _ *tenure.Term) error {
			running <- struct{}{}
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil
		}
		startScheduler(t, db, "a", job)
		<-running
		b := startScheduler(t, db, "b", job)

		db.Revoke(billing)
		if cause := <-ended; !errors.Is(cause, tenure.ErrSessionLost) {
			t.Errorf("the job's context ended with %v, want ErrSessionLost", cause)
		}
		<-running
		if !b.IsLeader() {
			t.Error("the job runs, but not on the other node")
		}
	})
}

func TestJobEndsBeforeTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		running, ended := make(chan struct{}), make(chan error, 1)
		startScheduler(t, db, "a", func(ctx context.Context, _ *tenure.Term) error {
			close(running)
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return tenure.Done
		})
		<-running

		began := time.Now()
		db.Silence(billing) // the network drops every packet of the leader
		if cause := <-ended; !errors.Is(cause, tenure.ErrTrustExpired) {
			t.Errorf("the job's context ended with %v, want ErrTrustExpired", cause)
		}
		if took := time.Since(began); took >= 10*time.Second {
			t.Errorf("the job ended after %v; by then another may lead", took)
		}
	})
}

func TestPausedJobCannotWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		paused, wake, written := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		startScheduler(t, db, "a", func(_ context.Context, term *tenure.Term) error {
			close(paused)
			<-wake // the process stands still and sees nothing of its context
			written <- db.Fence(term)
			return tenure.Done
		})
		<-paused
		b := startScheduler(t, db, "b", func(context.Context, *tenure.Term) error { return nil })

		db.Expire(billing) // in the database; the paused node has not noticed
		if _, err := b.WaitForLeadership(t.Context()); err != nil {
			t.Error(err)
		}
		close(wake)
		if err := <-written; !errors.Is(err, tenure.ErrFenced) {
			t.Errorf("the write of the old term: got error %v, want ErrFenced", err)
		}
	})
}

func TestOutageEndsLeadership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		election := startScheduler(t, db, "a", func(context.Context, *tenure.Term) error { return nil })

		db.Fail(errors.New("the disk is full"))
		time.Sleep(time.Minute)
		if election.IsLeader() {
			t.Error("the node leads although no heartbeat was acknowledged for a minute")
		}

		db.Fail(nil)
		if _, err := election.WaitForLeadership(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
