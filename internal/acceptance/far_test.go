package acceptance_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/docpage"
	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/processor"
)

// farPage is the page into which TestFarServer writes its table; empty for none.
var farPage = os.Getenv("TENURE_TEST_FAR_PAGE")

// farTrips are the round trips to the server.
var farTrips = []time.Duration{0, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond}

// farMeasures are what is measured, and the longest times: round trips plus what a machine
// needs that runs other tests at the same time.
var farMeasures = []struct {
	name  string
	trips float64
	plus  time.Duration
}{
	{"open", 10, 2 * time.Second},
	{"SIGKILL", 2, time.Second},
	{"step down", 3, time.Second},
	{"hand over", 12, 2 * time.Second}, // it opens a connection first
	{"drain", 7, time.Second},
	{"`InTx`", 5, time.Second},
	{"schedule", 10, 2 * time.Second},
	{"processor", 7, 2 * time.Second},
}

// Nodes far from the server open, take over, hand over, drain and work in a few round trips,
// and nothing fails or is repeated because of a fixed limit.
func TestFarServer(t *testing.T) {
	pgtest.Long(t)
	server := pgtest.Shared(t)
	var mu sync.Mutex
	results := map[time.Duration]map[string]time.Duration{}
	t.Run("trials", func(t *testing.T) {
		for _, roundTrip := range farTrips {
			t.Run(roundTrip.String(), func(t *testing.T) {
				t.Parallel()
				f := newFar(t, server, roundTrip)
				f.run(server)
				mu.Lock()
				defer mu.Unlock()
				results[roundTrip] = f.took
			})
		}
	})
	var table strings.Builder
	table.WriteString("| round trip |")
	for _, m := range farMeasures {
		fmt.Fprintf(&table, " %s |", m.name)
	}
	table.WriteString("\n|" + strings.Repeat("---|", len(farMeasures)+1) + "\n")
	for _, roundTrip := range farTrips {
		fmt.Fprintf(&table, "| %d ms |", roundTrip.Milliseconds())
		for _, m := range farMeasures {
			took := results[roundTrip][m.name]
			fmt.Fprintf(&table, " %d ms |", took.Milliseconds())
			if most := time.Duration(m.trips*float64(roundTrip)) + m.plus; took > most {
				t.Errorf("round trip of %v: %s took %v, want at most %v", roundTrip, m.name, took, most)
			}
		}
		table.WriteString("\n")
	}
	t.Log("\n" + table.String())
	if farPage != "" && !t.Failed() {
		if err := docpage.Update(farPage, "far-table", func(string) string { return table.String() }); err != nil {
			t.Fatal(err)
		}
	}
}

// far is an installation on a server that is a round trip away.
type far struct {
	*cluster
	wire   *faultwire.Proxy
	trip   time.Duration
	dsn    string // through the wire
	pool   *pgxpool.Pool
	took   map[string]time.Duration
	shouts *shouts
}

func newFar(t *testing.T, server *pgtest.Server, trip time.Duration) *far {
	t.Helper()
	c := clusterOn(t, server.DSN(), server.Schema(t))
	near, err := postgres.New(c.dsn, c.db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(near.Close)
	if err := near.Migrate(t.Context(), "all"); err != nil {
		t.Fatal(err)
	}
	f := &far{cluster: c, trip: trip, took: map[string]time.Duration{}, shouts: &shouts{}}
	if f.wire, err = faultwire.Start(address(server)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.wire.Close() })
	f.wire.Far(trip)
	if f.dsn, err = f.wire.DSN(c.dsn); err != nil {
		t.Fatal(err)
	}
	if f.pool, err = pgxpool.New(context.Background(), f.dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.pool.Close)
	return f
}

// candidate is a node that campaigns for the role.
type candidate struct {
	*tenure.Node
	backend  *postgres.Backend
	election *tenure.Election
}

// join opens a node with the default settings.
func (f *far) join(name string) *candidate {
	f.t.Helper()
	backend, err := postgres.New(f.dsn, f.db)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(backend.Close)
	logger := slog.New(slog.NewTextHandler(f.shouts, &slog.HandlerOptions{Level: slog.LevelWarn}))
	began := time.Now()
	node, err := tenure.Open(f.checks.steps.Of(f.t.Context()), backend, tenure.Config{Name: name, Logger: logger})
	if err != nil {
		f.t.Fatal(err)
	}
	f.took["open"] = max(f.took["open"], time.Since(began))
	f.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := node.Close(ctx); err != nil {
			f.t.Errorf("closing %s: %v", name, err)
		}
	})
	election, err := node.Election(tenure.NamedRole(role))
	if err != nil {
		f.t.Fatal(err)
	}
	if err := election.Start(context.Background()); err != nil {
		f.t.Fatal(err)
	}
	return &candidate{node, backend, election}
}

// until measures how long it takes until a node leads.
func (f *far) until(what string, begin func() error, next *candidate) *tenure.Term {
	f.t.Helper()
	began := time.Now()
	done := make(chan error, 1)
	go func() { done <- begin() }()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	term, err := next.election.WaitForLeadership(ctx)
	f.took[what] = time.Since(began)
	if err := cmp.Or(err, <-done); err != nil {
		f.t.Fatalf("%s: %v", what, err)
	}
	return term
}

// createTables opens nodes at the same time that find no tables.
func (f *far) createTables(server *pgtest.Server) {
	config := postgres.Config{Schema: server.Schema(f.t)}
	var group sync.WaitGroup
	defer group.Wait()
	for i := range 3 {
		group.Go(func() {
			backend, err := postgres.New(f.dsn, config)
			if err != nil {
				f.t.Error(err)
				return
			}
			defer backend.Close()
			logger := slog.New(slog.NewTextHandler(f.shouts, &slog.HandlerOptions{Level: slog.LevelWarn}))
			node, err := tenure.Open(f.t.Context(), backend, tenure.Config{Name: fmt.Sprint("first ", i), Logger: logger})
			if err != nil {
				f.t.Errorf("node %d that finds no tables: %v", i, err)
				return
			}
			if err := node.Close(context.Background()); err != nil {
				f.t.Error(err)
			}
		})
	}
}

func (f *far) run(server *pgtest.Server) {
	f.createTables(server)
	ctx := f.t.Context()
	child := f.spawn(childIdle, order{DSN: f.dsn, Schema: f.schema, Name: "killed", Lease: 10 * time.Second, Roles: 1})
	child.await("lead", time.Time{})
	one := f.join("one")
	f.awaitStandby(one)
	f.until("SIGKILL", func() error { child.Kill(); return nil }, one)

	two := f.join("two")
	f.awaitStandby(two)
	f.until("step down", func() error { return one.election.StepDown(ctx) }, two)
	f.awaitStandby(one)
	f.until("hand over", func() error { return two.election.HandOver(ctx, one.ID()) }, one)
	f.awaitStandby(two)
	began := time.Now()
	if err := one.Drain(ctx, nil); err != nil {
		f.t.Fatal(err)
	}
	f.took["drain"] = time.Since(began)
	term, err := two.election.WaitForLeadership(ctx)
	if err != nil {
		f.t.Fatal(err)
	}

	f.measure("`InTx`", func() time.Duration {
		began := time.Now()
		err := postgres.InTx(ctx, f.pool, term, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "SELECT 1")
			return err
		})
		if err != nil {
			f.t.Fatal(err)
		}
		return time.Since(began)
	})
	f.schedule(two)
	f.process(two)
	if lines := f.shouts.lines(); len(lines) > 0 {
		f.t.Errorf("round trip of %v: warnings: got %q, want none", f.trip, lines)
	}
}

// measure records the median of three.
func (f *far) measure(what string, once func() time.Duration) {
	all := []time.Duration{once(), once(), once()}
	slices.Sort(all)
	f.took[what] = all[1]
}

// awaitStandby waits until a node waits for the end of the other one's session.
func (f *far) awaitStandby(standby *candidate) {
	f.t.Helper()
	eventually(f.t, pgtest.Conn(f.t, f.cluster.dsn), `
		SELECT EXISTS (
			SELECT
			FROM pg_locks l
			JOIN `+f.quoted("nodes")+` n ON l.objid = n.incarnation::bigint::oid
			WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND NOT l.granted AND n.status <> 'dead' AND n.id <> $1
		)`, standby.ID())
}

func (f *far) schedule(leader *candidate) {
	scheduler, err := cron.New(leader.Node, f.pool, cron.Config{Role: tenure.NamedRole("schedules")})
	if err != nil {
		f.t.Fatal(err)
	}
	late := make(chan time.Duration, 100)
	err = scheduler.Add(cron.Schedule{Name: "far", Expression: "@every 5s", Job: func(_ context.Context, run cron.Run) error {
		late <- time.Since(run.ScheduledFor)
		return nil
	}})
	if err != nil {
		f.t.Fatal(err)
	}
	defer f.runs(scheduler.Run)()
	<-late // it may be from before the scheduler's term
	f.measure("schedule", func() time.Duration { return <-late })
}

func (f *far) process(leader *candidate) {
	store := eventstore.New(leader.backend, eventstore.Config{})
	group, err := processor.NewGroup(leader.Node, tenure.NamedRole("processors"), f.pool, processor.GroupConfig{})
	if err != nil {
		f.t.Fatal(err)
	}
	handled := make(chan struct{}, 100)
	err = group.Add(processor.Config{Name: "far", Log: store.Log(), Handle: func(context.Context, pgx.Tx, []processor.Event) error {
		handled <- struct{}{}
		return nil
	}})
	if err != nil {
		f.t.Fatal(err)
	}
	defer f.runs(group.Run)()
	appendOne := func() time.Duration {
		began := time.Now()
		if err := store.Append(f.t.Context(), f.pool, eventstore.NewEvent{Type: "far", Data: 1}); err != nil {
			f.t.Fatal(err)
		}
		<-handled
		return time.Since(began)
	}
	appendOne() // begins the term
	f.measure("processor", appendOne)
}

// runs runs a function until the function that it returns is called.
func (f *far) runs(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil && ctx.Err() == nil {
			f.t.Error(err)
		}
	}
}

// shouts are the warnings and errors of nodes.
type shouts struct {
	mu  sync.Mutex
	all []string
}

func (s *shouts) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, string(line))
	return len(line), nil
}

func (s *shouts) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}
