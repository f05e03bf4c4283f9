package assign_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/assign"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
)

func withCancel(t testing.TB) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}

// hold is the database of a leader that does not learn of the end of its term: it
// stops in a transaction that has assigned rows, and later continues.
type hold struct {
	*pgxpool.Pool
	held, goOn chan struct{}
	once       sync.Once
	committed  atomic.Bool
}

func (h *hold) BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error) {
	tx, err := h.Pool.BeginTx(ctx, options)
	return heldTx{tx, h}, err
}

type heldTx struct {
	pgx.Tx
	hold *hold
}

func (tx heldTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	tag, err := tx.Tx.Exec(context.WithoutCancel(ctx), sql, args...)
	if strings.Contains(sql, "AS a(id, node)") {
		tx.hold.once.Do(func() {
			close(tx.hold.held)
			<-tx.hold.goOn
		})
	}
	return tag, err
}

func (tx heldTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return tx.Tx.Query(context.WithoutCancel(ctx), sql, args...)
}

func (tx heldTx) Commit(ctx context.Context) error {
	err := tx.Tx.Commit(context.WithoutCancel(ctx))
	tx.hold.committed.Store(err == nil)
	return err
}

// What a leader has assigned cannot commit after its successor's term has
// begun.
func TestStaleLeaderAssignsNothing(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	w.add(10, "")
	a, b := w.worker("a"), w.worker("b")
	first, second := w.scheduler("first"), w.scheduler("second")
	w.sees(second, cluster.Active, a, b)
	pool := &hold{Pool: w.Pool, held: make(chan struct{}), goOn: make(chan struct{})}
	config := w.config()
	config.PollInterval = 20 * time.Millisecond // rows that the other has locked are left for a later pass
	stale, err := assign.New(first, pool, config)
	if err != nil {
		t.Fatal(err)
	}
	release := sync.OnceFunc(func() { close(pool.goOn) })
	defer release()
	w.run(stale)
	<-pool.held
	w.Exec(`SELECT pg_terminate_backend(pid) FROM {nodes} WHERE id = $1`, first.ID())
	w.run(w.assigner(second, config))
	term := func() int64 {
		return one[int64](w, `SELECT term FROM {terms} WHERE role = 'assigner' AND node_id = $1`, second.ID())
	}
	w.Await("the second leads", func() bool {
		return one[bool](w, `SELECT EXISTS (SELECT FROM {terms} WHERE role = 'assigner' AND node_id = $1)`, second.ID())
	})
	if got := w.count(`assignment > 0`); got > 0 {
		t.Errorf("%d rows were assigned although the first holds them", got)
	}
	before := term()
	release()
	w.Await("all assigned", func() bool { return w.count(`state = 'assigned'`) == 10 })
	if n := w.count(`attempts <> 1`); n > 0 {
		t.Errorf("%d rows were assigned by both: %s", n, w.dump())
	}
	if pool.committed.Load() {
		t.Error("what the first has assigned has landed")
	}
	if term() != before {
		t.Error("the second has lost the role")
	}
}

// A leader that is paused in a transaction keeps its row locks no longer than
// the trust window.
func TestPausedLeaderReleasesRowLocks(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	w.add(10, "")
	a := w.worker("a")
	leader := w.join(w.store(), tenure.Config{Name: "leader", Lease: time.Second}, cluster.Config{Roles: []cluster.NodeRole{cluster.Scheduler}})
	pool := &hold{Pool: w.Pool, held: make(chan struct{}), goOn: make(chan struct{})}
	config := w.config()
	config.PollInterval = 20 * time.Millisecond
	assigner, err := assign.New(leader, pool, config)
	if err != nil {
		t.Fatal(err)
	}
	release := sync.OnceFunc(func() { close(pool.goOn) })
	defer release()
	w.run(assigner)
	<-pool.held
	free := func() int {
		return one[int](w, `SELECT count(*) FROM (SELECT FROM {schema}.jobs FOR UPDATE SKIP LOCKED) free`)
	}
	if n := free(); n > 0 {
		t.Fatalf("%d rows are not locked: the test proves nothing", n)
	}
	w.Await("the rows free", func() bool { return free() == 10 })
	release()
	w.Await("all assigned", func() bool { return w.has(a) == 10 })
	if n := w.count(`attempts <> 1`); n > 0 {
		t.Errorf("%d rows were assigned twice", n)
	}
}

// If many rows wait, a transaction locks no more than it assigns.
func TestPassLocksOnlyABatch(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	for _, capability := range []string{"", "x", "y"} {
		w.add(10, capability)
	}
	w.worker("a", "x", "y")
	pool := &hold{Pool: w.Pool, held: make(chan struct{}), goOn: make(chan struct{})}
	config := w.config()
	config.BatchSize = 10
	assigner, err := assign.New(w.scheduler("leader"), pool, config)
	if err != nil {
		t.Fatal(err)
	}
	release := sync.OnceFunc(func() { close(pool.goOn) })
	defer release()
	w.run(assigner)
	<-pool.held
	if n := one[int](w, `SELECT count(*) FROM (SELECT FROM {schema}.jobs FOR UPDATE SKIP LOCKED) free`); n != 20 {
		t.Errorf("%d of 30 rows are free while 10 are given out", n)
	}
	release()
	w.Await("all assigned", func() bool { return w.count(`state = 'assigned'`) == 30 })
}

// A dead node gets no rows, even if the leader has not been notified of the
// death.
func TestUnannouncedDeadNodeGetsNoRows(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	slow := tenure.Config{Name: "a", Lease: time.Minute, CheckInterval: 20 * time.Second}
	a := node{Member: w.join(&postgrestest.Mortal{Backend: w.store()}, slow, cluster.Config{
		Roles: []cluster.NodeRole{cluster.Worker}, Heartbeat: cluster.HeartbeatConfig{Interval: 20 * time.Second},
	})}
	slow.Name = "leader"
	leader := w.join(w.store(), slow, cluster.Config{Roles: []cluster.NodeRole{cluster.Scheduler}})
	w.sees(leader, cluster.Active, a)
	config := w.config()
	config.PollInterval = 10 * time.Millisecond
	w.run(w.assigner(leader, config))
	w.add(1, "")
	w.Await("a row at the node", func() bool { return w.has(a) == 1 })

	w.Exec(`UPDATE {nodes} SET status = 'dead' WHERE id = $1`, a.ID())
	w.add(5, "")
	b := w.worker("b")
	w.Await("all at the other node", func() bool { return w.has(b) == 6 })
	if n := w.count(`assignment > (SELECT term FROM {terms} WHERE role = 'assigner') AND id > 1`); n > 0 {
		t.Errorf("%d rows were given to a dead node before", n)
	}
}

// An assignment has a larger number than those before it, also if a failover has lost them.
func TestNumbersIncreaseAfterLostAssignments(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	a := w.worker("a")
	w.add(1, "")
	assigned := func(leader string) int64 {
		stop := w.run(w.assigner(w.scheduler(leader), w.config()))
		defer stop()
		w.Await("the row assigned", func() bool { return w.has(a) == 1 })
		return one[int64](w, `SELECT assignment FROM {schema}.jobs`)
	}
	lost := assigned("first")
	w.Exec(`UPDATE {schema}.jobs SET state = 'pending', node_id = NULL, attempts = 0, assignment = 0`)
	if next := assigned("second"); next <= lost {
		t.Errorf("the number %d follows %d", next, lost)
	}
}

// A worker that was declared dead and continues cannot finish rows of other
// workers, nor rows that were assigned to it again.
func TestStaleWorkerCannotFinishRows(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	a := w.worker("a")
	leader := w.scheduler("leader")
	w.run(w.assigner(leader, w.config()))
	w.add(1, "")
	begin := func(n node) (assignment int64) {
		w.Await("a row at "+n.Node().Name(), func() bool { return w.has(n) == 1 })
		return one[int64](w, `UPDATE {schema}.jobs SET state = 'running' WHERE node_id = $1 AND state = 'assigned' RETURNING assignment`, n.ID())
	}
	finish := func(assignment int64) bool {
		tag, err := w.Pool.Exec(t.Context(), pgtest.SQL(w.Backend,
			`UPDATE {schema}.jobs SET state = 'done', node_id = NULL WHERE id = 1 AND assignment = $1 AND state = 'running'`), assignment)
		if err != nil {
			t.Fatal(err)
		}
		return tag.RowsAffected() == 1
	}
	stale := begin(a)
	a.kill()
	w.Await("the row taken back", func() bool { return w.count(`state = 'pending'`) == 1 })
	if finish(stale) {
		t.Error("the row was finished while no node had it")
	}
	b := w.worker("b")
	second := begin(b)
	if finish(stale) {
		t.Error("the row was finished by the node that had lost it")
	}
	// The same node, and the same number of attempts.
	w.Exec(`UPDATE {schema}.jobs SET state = 'dead', node_id = NULL, attempts = 10`)
	if n, err := assign.Replay(t.Context(), w.Pool, w.config(), 0); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	third := begin(b)
	if finish(second) {
		t.Error("the row was finished by an earlier attempt of the same node")
	}
	if !finish(third) {
		t.Error("the row was not finished by the node that has it")
	}
}

// A locked row delays no other row.
func TestLockedRowDelaysNoOther(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	w.add(5, "")
	tx, err := w.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, tx, pgtest.SQL(w.Backend, `SELECT FROM {schema}.jobs WHERE id = 1 FOR UPDATE`))
	a := w.worker("a")
	w.run(w.assigner(w.scheduler("leader"), w.config()))
	w.Await("the others assigned", func() bool { return w.has(a) == 4 })
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.add(1, "")
	w.Await("all assigned", func() bool { return w.has(a) == 6 })
}
