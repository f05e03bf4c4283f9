package recipes

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/postgres"
)

const riverVariable = "TENURE_RIVER_TEST"

// riverProcess is a process whose scheduler inserts a job of River at each tick while it
// leads. It runs until it is killed.
type riverProcess struct {
	DSN   string
	Lease time.Duration
	Hold  bool // the first job waits for a line of the parent process
}

func runRiver(given string) {
	var p riverProcess
	err := json.Unmarshal([]byte(given), &p)
	if err == nil {
		err = p.run(context.Background())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func (p riverProcess) run(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, p.DSN)
	if err != nil {
		return err
	}
	backend, err := postgres.New(p.DSN, postgres.Config{})
	if err != nil {
		return err
	}
	node, err := tenure.Open(ctx, backend, tenure.Config{Name: fmt.Sprint("process-", os.Getpid()), Lease: p.Lease})
	if err != nil {
		return err
	}
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	scheduler, err := newSchedule(node, pool, p.report(insertTick(client)))
	if err != nil {
		return err
	}
	go children.Watch(0, children.Leads(func() bool {
		for _, e := range node.Elections() {
			if e.IsLeader() {
				return true
			}
		}
		return false
	}))
	return errors.Join(scheduler.Run(ctx), errors.New("the scheduler has ended"))
}

// report returns a job that inserts as job does and reports that. If the process holds,
// its first job inserts when it is released, also if its context has ended by then.
func (p riverProcess) report(job cron.Job) cron.Job {
	release := make(chan struct{})
	go func() { // ends with the process
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			release <- struct{}{}
		}
	}()
	held := !p.Hold // one job runs at a time
	return func(ctx context.Context, run cron.Run) (err error) {
		if !held {
			held = true
			children.Send(children.Report{Kind: "tick", Sequence: run.ScheduledFor.Unix()})
			children.Hold(run.Term, release, func(wait func() error) error {
				err = errors.Join(wait(), job(context.WithoutCancel(ctx), run))
				return err
			})
			return err
		}
		inserted := children.Report{Kind: "begun", Term: run.Term.Number(), Sequence: run.ScheduledFor.Unix()}
		children.Send(inserted)
		inserted.Kind = "wrote"
		if err = job(ctx, run); err != nil {
			inserted.Error, inserted.Lead = err.Error(), run.Term.Valid()
		}
		children.Send(inserted)
		return err
	}
}

// riverFleet is some of these processes, and what they reported.
type riverFleet struct {
	*installation
	all    []*children.Child
	writes children.Writes
}

func newRiverFleet(t *testing.T) *riverFleet {
	f := &riverFleet{installation: newInstallation(t)}
	newRiver(f.installation)
	return f
}

func (f *riverFleet) start(p riverProcess) *children.Child {
	f.Helper()
	p.DSN = f.dsn
	given, err := json.Marshal(p)
	if err != nil {
		f.Fatal(err)
	}
	c, err := children.Start(children.Options{
		Name: fmt.Sprint("process ", len(f.all)), Env: []string{riverVariable + "=" + string(given)}, Writes: &f.writes,
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(c.Kill)
	f.all = append(f.all, c)
	return c
}

// awaitJobs waits for some more jobs.
func (f *riverFleet) awaitJobs(more int) {
	f.Helper()
	want := len(f.names(readTicks)) + more
	err := children.Until(f.Context(), time.Minute, 10*time.Millisecond, func() error {
		if got := len(f.names(readTicks)); got < want {
			return fmt.Errorf("%d jobs, want %d", got, want)
		}
		return nil
	})
	if err != nil {
		f.Fatal(err)
	}
}

// end ends the processes and returns the ticks of the jobs, which must increase.
func (f *riverFleet) end() (ticks []time.Time) {
	f.Helper()
	for _, c := range f.all {
		c.Kill()
	}
	for _, text := range f.names(readTicks) {
		tick, err := time.Parse(time.RFC3339, text)
		if err != nil {
			f.Fatal(err)
		}
		if n := len(ticks); n > 0 && !tick.After(ticks[n-1]) {
			f.Errorf("a job of %v follows that of %v, want each tick once", tick, ticks[n-1])
		}
		ticks = append(ticks, tick)
	}
	return ticks
}

// TestRiverJobsSurviveKilledLeaders: the process that leads is killed between two ticks,
// three times. Each period has one job, and none is left out.
func TestRiverJobsSurviveKilledLeaders(t *testing.T) {
	t.Parallel()
	f := newRiverFleet(t)
	f.start(riverProcess{})
	f.start(riverProcess{})
	f.awaitJobs(2)
	for range 3 {
		leader := slices.IndexFunc(f.all, (*children.Child).Leading)
		if leader < 0 {
			t.Fatal("a job was inserted, but no process leads")
		}
		f.all[leader].Kill()
		f.start(riverProcess{})
		f.awaitJobs(2)
	}
	ticks := f.end()
	for n, tick := range ticks[1:] {
		if tick.Sub(ticks[n]) != time.Second {
			t.Errorf("a job of %v follows that of %v, want one for each second", tick, ticks[n])
		}
	}
}

// TestPausedRiverLeaderInsertsNothing: the leader is paused before it inserts a job, until
// another process has inserted in a later term. When it resumes, the fence refuses its
// insert. The next leader has inserted that job, and each tick has at most one.
func TestPausedRiverLeaderInsertsNothing(t *testing.T) {
	t.Parallel()
	f := newRiverFleet(t)
	const lease = 3 * time.Second
	stale := f.start(riverProcess{Lease: lease, Hold: true})
	held, err := stale.Await(t.Context(), "tick", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stale.Await(t.Context(), "held", time.Time{}); err != nil {
		t.Fatal(err)
	}
	f.start(riverProcess{Lease: lease})
	if err := f.writes.CheckStale(t.Context(), stale); err != nil {
		t.Error(err)
	}
	f.awaitJobs(2)
	if first := f.end()[0]; first.Unix() != held.Sequence {
		t.Errorf("the first job is of %v, want that of the tick whose leader was paused, %v", first, time.Unix(held.Sequence, 0))
	}
}
