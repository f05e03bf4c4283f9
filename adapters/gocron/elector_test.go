package gocron_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	tenuregocron "github.com/exactly-one/tenure/adapters/gocron"
	"github.com/exactly-one/tenure/internal/postgrestest"
)

// TestElectorRunsJobsOnTheLeaderOnly: while the sessions of leaders are killed, a tick
// runs once, or once more if the next term began after it.
func TestElectorRunsJobsOnTheLeaderOnly(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	var elections []*tenure.Election
	for i := range nodes {
		elections = append(elections, f.elector(i))
	}
	led := func() bool {
		for _, e := range elections {
			if e.IsLeader() {
				return true
			}
		}
		return false
	}
	const ticks = 20
	for i := range ticks {
		f.Await("a leader", led)
		f.tick(func() {
			if i%2 == 1 {
				f.killLeader("jobs")
			}
		})
	}
	byTick := f.check("jobs")
	for tick, runs := range byTick {
		for i, run := range runs[1:] {
			if run.term.Number() == runs[i].term.Number() {
				t.Errorf("term %d ran the tick %v twice", run.term.Number(), tick)
			}
			t.Logf("tick %v ran again %v later in another term", tick, run.began.Sub(runs[i].began))
		}
	}
	if len(byTick) < ticks/2 {
		t.Errorf("%d of %d ticks ran; want all where the leader was not killed", len(byTick), ticks)
	}
}

func TestElectorRefusesWithoutTerm(t *testing.T) {
	t.Parallel()
	i := postgrestest.New(t)
	election, err := i.Node("api-1", tenure.Config{}).Election(tenure.NamedRole("jobs"))
	if err != nil {
		t.Fatal(err)
	}
	e := tenuregocron.NewElector(election)
	job := e.Task(func(context.Context, *tenure.Term) error { return errors.New("the job ran") })
	for name, err := range map[string]error{"IsLeader": e.IsLeader(t.Context()), "Task": job(t.Context())} {
		if !errors.Is(err, tenure.ErrNotLeader) {
			t.Errorf("%s before a term: %v; want ErrNotLeader", name, err)
		}
	}
}

// TestTaskEndsWithItsTerm: the job's context ends with the term, and a step-down waits
// for the job.
func TestTaskEndsWithItsTerm(t *testing.T) {
	t.Parallel()
	i := postgrestest.New(t)
	election, err := i.Node("api-1", tenure.Config{StopTimeout: 100 * time.Millisecond}).Election(tenure.NamedRole("jobs"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := election.TryAcquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	began, cause, returned := make(chan struct{}), make(chan error, 1), make(chan struct{})
	job := tenuregocron.NewElector(election).Task(func(ctx context.Context, _ *tenure.Term) error {
		close(began)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		<-returned
		return nil
	})
	done := make(chan error, 1)
	go func() { done <- job(t.Context()) }()
	<-began
	stepped := make(chan error, 1)
	go func() { stepped <- election.StepDown(t.Context()) }()
	if err := <-cause; !errors.Is(err, tenure.ErrSteppedDown) {
		t.Errorf("cause %v; want ErrSteppedDown", err)
	}
	select {
	case err := <-stepped:
		t.Errorf("the step-down did not wait for the job: %v", err)
	default:
	}
	close(returned)
	if err := errors.Join(<-stepped, <-done); err != nil {
		t.Error(err)
	}
}
