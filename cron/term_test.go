package cron_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/postgres"
)

const never = "0 0 29 2 *" // but for a test on such a day

// trigger requests a run of a schedule as soon as the schedule is known.
func (w *world) trigger(name string) int64 {
	w.Helper()
	var id int64
	w.Await("the schedule "+name, func() bool {
		var err error
		id, err = w.management.Trigger(w.Context(), name, "test")
		var unknown *cron.UnknownError
		if err != nil && !errors.As(err, &unknown) {
			w.Fatalf("triggering a run of %s: %v", name, err)
		}
		return err == nil
	})
	return id
}

func (w *world) state(run int64) cron.State {
	w.Helper()
	return one[cron.State](w, `SELECT state FROM {runs} WHERE id = $1`, run)
}

// A leader that continues a transaction after its term changes nothing, and its
// locks do not stop the next leader.
func TestStaleLeaderChangesNothing(t *testing.T) {
	t.Parallel()
	for driver, begin := range map[string]func(*testing.T, *world) inTx{"pgx": inPgxTx, "database/sql": inSQLTx} {
		for policy, want := range map[cron.Policy]cron.State{
			cron.AtMostOnce:  cron.Abandoned,
			cron.AtLeastOnce: cron.Succeeded,
		} {
			t.Run(driver+"/"+string(policy), func(t *testing.T) {
				t.Parallel()
				testStaleLeader(t, policy, want, begin)
			})
		}
	}
}

// inTx runs a statement in a transaction of a run, and then calls a function in it.
type inTx func(ctx context.Context, run cron.Run, statement string, then func(), args ...any) error

func inPgxTx(*testing.T, *world) inTx {
	return func(ctx context.Context, run cron.Run, statement string, then func(), args ...any) error {
		return run.InTx(ctx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, statement, args...)
			then()
			return err
		})
	}
}

func inSQLTx(t *testing.T, w *world) inTx {
	db := stdlib.OpenDBFromPool(w.Pool)
	t.Cleanup(func() { _ = db.Close() }) // it closes no connection of the pool
	return func(ctx context.Context, run cron.Run, statement string, then func(), args ...any) error {
		return run.InSQLTx(ctx, db, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, statement, args...)
			then()
			return err
		})
	}
}

func testStaleLeader(t *testing.T, policy cron.Policy, want cron.State, begin func(*testing.T, *world) inTx) {
	w := newWorld(t)
	tx := begin(t, w)
	w.Exec(`CREATE TABLE {schema}.landed (run bigint PRIMARY KEY, attempt integer)`)
	insert := pgtest.SQL(w.Backend, `INSERT INTO {schema}.landed VALUES ($1, $2)`)
	inside, resume := make(chan struct{}), make(chan struct{})
	stale := make(chan error, 1)
	schedule := func(job cron.Job) cron.Schedule {
		return cron.Schedule{Name: "invoices", Expression: never, Policy: policy, Job: job}
	}
	w.run(w.Node("a", tenure.Config{}), cron.Config{}, schedule(func(ctx context.Context, run cron.Run) error {
		ctx = context.WithoutCancel(ctx) // a stopped process receives no cancellation
		err := tx(ctx, run, insert, func() {
			close(inside)
			<-resume
		}, run.ID, run.Attempt)
		stale <- err
		return err
	}))
	release := sync.OnceFunc(func() { close(resume) })
	t.Cleanup(release) // before the scheduler's, which waits for the job
	run := w.trigger("invoices")
	<-inside
	w.run(w.Node("b", tenure.Config{}), cron.Config{}, schedule(func(ctx context.Context, run cron.Run) error {
		return tx(ctx, run, insert, func() {}, run.ID, run.Attempt)
	}))
	w.Exec(`SELECT pg_terminate_backend(pid) FROM {nodes} WHERE name = 'a'`)
	w.Await("the next leader's word", func() bool { return w.state(run) == want })
	release()
	if err := <-stale; err == nil {
		t.Error("the transaction of the earlier term was committed")
	}
	landed := one[int](w, `SELECT coalesce(sum(attempt), 0) FROM {schema}.landed`)
	if policy == cron.AtMostOnce && landed != 0 || policy == cron.AtLeastOnce && landed != 2 {
		t.Errorf("the attempts that landed add up to %d", landed)
	}
	if state := w.state(run); state != want {
		t.Errorf("the run is %s; want %s", state, want)
	}
}

// A stopping term lets its jobs finish and starts no others.
func TestStoppingTermLetsJobsFinish(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	begun, end := make(chan struct{}, 1), make(chan struct{})
	node := w.Node("a", tenure.Config{StopTimeout: 2 * patience})
	stop := w.run(node, cron.Config{}, cron.Schedule{
		Name: "invoices", Expression: never, Overlap: cron.OverlapQueue, Job: func(ctx context.Context, _ cron.Run) error {
			begun <- struct{}{}
			<-end
			return ctx.Err()
		},
	})
	first := w.trigger("invoices")
	<-begun
	second := w.trigger("invoices")
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	w.Await("the resignation", func() bool { return node.Elections()[0].State() == tenure.Releasing })
	close(end)
	select {
	case <-stopped:
	case <-time.After(patience):
		t.Error("the scheduler continues although no job does")
	}
	if state := w.state(first); state != cron.Succeeded {
		t.Errorf("the run is %s", state)
	}
	if state := w.state(second); state != cron.Waiting {
		t.Errorf("the run that waited is %s", state)
	}
}

// gated is a database whose queries wait while its gate is closed.
type gated struct {
	postgres.Database

	closed  atomic.Bool
	waiting chan struct{} // a query waits
	gate    chan struct{} // closed to release the query
}

func (g *gated) Query(ctx context.Context, statement string, args ...any) (pgx.Rows, error) {
	if g.closed.CompareAndSwap(true, false) {
		close(g.waiting)
		<-g.gate
	}
	return g.Database.Query(ctx, statement, args...)
}

// If the term begins to stop while the scheduler reads its schedules, no job
// starts, even if another job has ended.
func TestStoppingTermStartsNoJobAfterReading(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	database := &gated{Database: w.pool, waiting: make(chan struct{}), gate: make(chan struct{})}
	node := w.Node("a", tenure.Config{StopTimeout: 2 * patience})
	scheduler, err := cron.New(node, database, cron.Config{Role: tenure.NamedRole("scheduler")})
	if err != nil {
		t.Fatal(err)
	}
	begun, end := make(chan struct{}, 2), make(chan struct{})
	if err := scheduler.Add(cron.Schedule{
		Name: "invoices", Expression: never, Overlap: cron.OverlapQueue, Job: func(context.Context, cron.Run) error {
			begun <- struct{}{}
			<-end
			return nil
		},
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- scheduler.Run(ctx) }()
	first := w.trigger("invoices")
	<-begun
	database.closed.Store(true)
	second := w.trigger("invoices")
	<-database.waiting
	cancel()
	w.Await("the resignation", func() bool { return node.Elections()[0].State() == tenure.Releasing })
	close(end)
	<-time.After(100 * time.Millisecond) // in which the outcome of the job is reported
	close(database.gate)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if one, two := w.state(first), w.state(second); one != cron.Succeeded || two != cron.Waiting {
		t.Errorf("the runs are %s and %s; want %s and %s", one, two, cron.Succeeded, cron.Waiting)
	}
}

func TestChangedExpressionTicksFromNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := cron.Schedule{Name: "changed", Expression: hourly(), CatchUp: cron.CatchUpAll, Job: nothing}
	same := cron.Schedule{Name: "same", Expression: hourly(), CatchUp: cron.CatchUpAll, Job: nothing}
	w.known(10*time.Hour, old, same)
	changed := old
	changed.Zone = "Asia/Kathmandu"
	w.run(w.Node("a", tenure.Config{}), cron.Config{Grace: time.Nanosecond}, changed, same)
	w.Await("the ticks of the other", func() bool { return w.states("same")[cron.Succeeded] == 10 })
	if states := w.states("changed"); len(states) != 0 {
		t.Errorf("the schedule that was changed has runs %v", states)
	}
}

// A schedule that another role runs stays with that role while it has a leader.
func TestScheduleMovesToRoleWhenVacant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	schedule := func(ran chan string, by string) cron.Schedule {
		return cron.Schedule{Name: "moved", Expression: never, Job: func(context.Context, cron.Run) error { ran <- by; return nil }}
	}
	ran := make(chan string, 10)
	stop := w.run(w.Node("a", tenure.Config{}), cron.Config{Role: tenure.NamedRole("one")}, schedule(ran, "one"))
	w.trigger("moved")
	if by := <-ran; by != "one" {
		t.Fatalf("%s ran it", by)
	}
	w.run(w.Node("b", tenure.Config{}), cron.Config{Role: tenure.NamedRole("two"), PollInterval: 20 * time.Millisecond}, schedule(ran, "two"))
	w.Await("the second leader", func() bool {
		return one[int](w, `SELECT count(*) FROM {terms} WHERE role = 'two' AND ended_at IS NULL`) == 1
	})
	w.trigger("moved")
	if by := <-ran; by != "one" {
		t.Fatalf("%s ran it, though the first leads", by)
	}
	stop()
	w.Await("the move", func() bool { return one[string](w, `SELECT role FROM {schedules}`) == "two" })
	w.trigger("moved")
	if by := <-ran; by != "two" {
		t.Fatalf("%s ran it", by)
	}
}

// unsure is a database of whose commits some are not acknowledged, and some
// fail.
type unsure struct {
	postgres.Database

	active atomic.Bool
	failed atomic.Int64
}

type unsureTx struct {
	pgx.Tx

	database *unsure
}

var errUnsure = errors.New("the connection was lost")

func (u *unsure) BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error) {
	tx, err := u.Database.BeginTx(ctx, options)
	return unsureTx{tx, u}, err
}

func (tx unsureTx) Commit(ctx context.Context) error {
	if !tx.database.active.Load() || rand.IntN(3) > 0 {
		return tx.Tx.Commit(ctx)
	}
	tx.database.failed.Add(1)
	if rand.IntN(2) == 0 {
		return errors.Join(errUnsure, tx.Tx.Rollback(ctx))
	}
	return errors.Join(errUnsure, tx.Tx.Commit(ctx))
}

// Whether a commit happened or not, each tick runs exactly once.
func TestTicksRunOnceAfterUnknownCommits(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	w := newWorld(t)
	database := &unsure{Database: w.pool}
	database.active.Store(true)
	scheduler, err := cron.New(w.Node("a", tenure.Config{}), database, cron.Config{Role: tenure.NamedRole("scheduler")})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	began := map[int64]int{}
	for _, overlap := range []cron.Overlap{cron.OverlapQueue, cron.OverlapAllow} {
		if err := scheduler.Add(cron.Schedule{
			Name: string(overlap), Expression: "@every 1s", Overlap: overlap, Job: func(_ context.Context, run cron.Run) error {
				mu.Lock()
				defer mu.Unlock()
				began[run.ID]++
				return nil
			},
		}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- scheduler.Run(ctx) }()
	w.Await("failures and ticks", func() bool {
		return database.failed.Load() >= 5 && one[int](w, `SELECT count(*) FROM {runs} WHERE state = 'succeeded'`) >= 10
	})
	database.active.Store(false)
	for _, overlap := range []cron.Overlap{cron.OverlapQueue, cron.OverlapAllow} {
		if err := w.management.Pause(t.Context(), string(overlap), "test"); err != nil {
			t.Fatal(err)
		}
	}
	w.Await("the end of all that runs", func() bool { return one[int](w, `SELECT count(*) FROM {runs} WHERE state = 'running'`) == 0 })
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	rows, err := w.pool.Query(t.Context(), pgtest.SQL(w.Backend, `SELECT id, state, error FROM {runs}`))
	if err != nil {
		t.Fatal(err)
	}
	var id int64
	var state cron.State
	var reason string
	if _, err := pgx.ForEachRow(rows, []any{&id, &state, &reason}, func() error {
		due := state == cron.Waiting || state == cron.Missed && reason == "no leader handled it before the pause"
		if state == cron.Succeeded && began[id] != 1 || due && began[id] != 0 || state != cron.Succeeded && !due {
			t.Errorf("the run %d is %s and began %d times", id, state, began[id])
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// counting counts the statements sent to a database.
type counting struct {
	postgres.Database

	queries, transactions atomic.Int64
}

func (c *counting) Query(ctx context.Context, statement string, args ...any) (pgx.Rows, error) {
	c.queries.Add(1)
	return c.Database.Query(ctx, statement, args...)
}

func (c *counting) Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error) {
	c.queries.Add(1)
	return c.Database.Exec(ctx, statement, args...)
}

func (c *counting) BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error) {
	c.transactions.Add(1)
	return c.Database.BeginTx(ctx, options)
}

// An idle scheduler runs one query per poll interval, however many schedules it
// has.
func TestIdleSchedulerQueriesOncePerPoll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	database := &counting{Database: w.pool}
	const poll = 200 * time.Millisecond
	scheduler, err := cron.New(w.Node("a", tenure.Config{}), database, cron.Config{Role: tenure.NamedRole("scheduler"), PollInterval: poll})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		if err := scheduler.Add(cron.Schedule{Name: name, Expression: never, Job: nothing}); err != nil {
			t.Fatal(err)
		}
	}
	stop := postgrestest.Run(t, scheduler.Run)
	w.Await("the schedules", func() bool {
		return one[int](w, `SELECT count(*) FROM {schedules}`) == 5 && database.queries.Load() > 2
	})
	queries, transactions, began := database.queries.Load(), database.transactions.Load(), time.Now()
	const asked = 10
	w.Await("the next questions", func() bool { return database.queries.Load()-queries >= asked })
	if took := time.Since(began); took < (asked-2)*poll {
		t.Errorf("%d queries in %v; want one in %v", asked, took, poll)
	}
	if n := database.transactions.Load() - transactions; n != 0 {
		t.Errorf("%d transactions, though nothing was due", n)
	}
	stop()
}
