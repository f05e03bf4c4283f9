package gocron_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jonboulle/clockwork"

	"github.com/exactly-one/tenure"
	tenuregocron "github.com/exactly-one/tenure/adapters/gocron"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/postgres"
)

// fleet is three nodes with a scheduler each. Their schedulers share a clock, which
// advances by one second, a tick, when all have run or skipped the job of the last.
type fleet struct {
	*postgrestest.Installation
	clock    *clockwork.FakeClock
	finished chan struct{} // a value for each node and tick

	mu   sync.Mutex
	runs []jobRun
}

const nodes = 3

// jobRun is one run of the job.
type jobRun struct {
	tick  time.Time
	term  *tenure.Term
	began time.Time
}

func newFleet(t *testing.T) *fleet {
	f := &fleet{Installation: postgrestest.New(t), clock: clockwork.NewFakeClock(), finished: make(chan struct{}, nodes)}
	f.Exec(`CREATE TABLE ` + f.table() + ` (term bigint NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp())`)
	return f
}

func (f *fleet) table() string { return pgx.Identifier{f.Schema, "job_runs"}.Sanitize() }

// schedule starts a scheduler whose only job ticks each second.
func (f *fleet) schedule(task func(context.Context) error, distribution gocron.SchedulerOption) {
	f.Helper()
	scheduler, err := gocron.NewScheduler(distribution, gocron.WithClock(f.clock), gocron.WithMonitor(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := scheduler.Shutdown(); err != nil {
			f.Error(err)
		}
	})
	if _, err := scheduler.NewJob(gocron.DurationJob(time.Second), gocron.NewTask(task), gocron.WithName("report")); err != nil {
		f.Fatal(err)
	}
	scheduler.Start()
}

// IncrementJob counts the jobs that have run or been skipped.
func (f *fleet) IncrementJob(uuid.UUID, string, []string, gocron.JobStatus) { f.finished <- struct{}{} }

// RecordJobTiming does nothing; gocron wants it.
func (f *fleet) RecordJobTiming(time.Time, time.Time, uuid.UUID, string, []string) {}

// work is the job: it writes in a fenced transaction, and lasts until its term ends or
// a moment has passed.
func (f *fleet) work(ctx context.Context, term *tenure.Term) error {
	f.mu.Lock()
	f.runs = append(f.runs, jobRun{f.clock.Now(), term, time.Now()})
	f.mu.Unlock()
	err := postgres.InTx(ctx, f.Pool, term, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO `+f.table()+` (term) VALUES ($1)`, term.Number())
		return err
	})
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Millisecond):
	}
	return err
}

// awaitInterval waits until an interval has passed since the last term of the job
// began, refused attempts included.
func awaitInterval(i *postgrestest.Installation, interval time.Duration) {
	i.Helper()
	i.Await("the interval", func() bool {
		terms, err := i.Backend.History(i.Context(), history.Query{Role: "gocron/report", Limit: 1})
		if err != nil {
			i.Fatal(err)
		}
		return len(terms) == 0 || postgrestest.Value[time.Time](i, "SELECT clock_timestamp()").Sub(terms[0].Began) > interval
	})
}

// tick advances the clock, calls fault, and waits until the job has run or been
// skipped everywhere.
func (f *fleet) tick(fault func()) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), postgrestest.Patience)
	defer cancel()
	if err := f.clock.BlockUntilContext(ctx, nodes); err != nil {
		f.Fatalf("the schedulers do not wait for the next tick: %v", err)
	}
	f.clock.Advance(time.Second)
	fault()
	for range nodes {
		select {
		case <-f.finished:
		case <-ctx.Done():
			f.Fatal("the job of a tick has not ended")
		}
	}
}

// killLeader ends the server session of the leader of a role, if there is one.
func (f *fleet) killLeader(role string) {
	f.Helper()
	for _, leader := range f.holders(role) {
		for _, session := range leader.Sessions {
			f.Exec(`SELECT pg_terminate_backend($1)`, session.PID)
		}
	}
}

func (f *fleet) holders(role string) []history.RoleStatus {
	f.Helper()
	status, err := f.Backend.Holders(f.Context(), tenure.NamedRole(role))
	if err != nil {
		f.Fatal(err)
	}
	return status
}

// check checks the runs against the history of the role, and returns them by tick.
func (f *fleet) check(role string) map[time.Time][]jobRun {
	f.Helper()
	terms, err := f.Backend.History(f.Context(), history.Query{Role: role})
	if err != nil {
		f.Fatal(err)
	}
	for i, term := range terms[1:] { // the last began first
		late := postgrestest.Value[int](f.Installation, `SELECT count(*)::int FROM `+f.table()+` WHERE term = $1 AND at > $2`, term.Term, terms[i].Began)
		if late > 0 {
			f.Errorf("term %d committed %d runs after term %d began", term.Term, late, terms[i].Term)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	ticks := map[time.Time][]jobRun{}
	for i, run := range f.runs {
		ticks[run.tick] = append(ticks[run.tick], run)
		if i > 0 && run.term.Number() < f.runs[i-1].term.Number() {
			f.Errorf("a job of term %d began after one of term %d", run.term.Number(), f.runs[i-1].term.Number())
		}
	}
	return ticks
}

// elector starts an elected scheduler on a separate node.
func (f *fleet) elector(i int) *tenure.Election {
	f.Helper()
	election, err := postgrestest.OpenNode(f, f.NewBackend(), tenure.Config{Name: fmt.Sprint("node-", i)}).Election(tenure.NamedRole("jobs"))
	if err != nil {
		f.Fatal(err)
	}
	if err := election.Start(f.Context()); err != nil {
		f.Fatal(err)
	}
	e := tenuregocron.NewElector(election)
	f.schedule(e.Task(f.work), gocron.WithDistributedElector(e))
	return election
}

// locker starts a scheduler that locks its jobs on a separate node.
func (f *fleet) locker(i int, config tenuregocron.LockerConfig) {
	f.Helper()
	node := postgrestest.OpenNode(f, f.NewBackend(), tenure.Config{Name: fmt.Sprint("node-", i)})
	l, err := tenuregocron.NewLocker(node, config)
	if err != nil {
		f.Fatal(err)
	}
	f.schedule(l.Task("report", f.work), gocron.WithDistributedLocker(l))
}
