package assign_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/assign"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/testkit"
)

// A node has at most MaxPerNode unfinished rows; when it finishes one, it gets
// the next without waiting for a poll.
func TestMaxPerNodeLimitsUnfinishedRows(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	a, b := w.worker("a"), w.worker("b")
	config := w.config()
	config.MaxPerNode = 5
	leader := w.scheduler("leader")
	assigner := w.assigner(leader, config)
	w.run(assigner)
	w.add(30, "")
	w.Await("all places taken", func() bool { return w.has(a) == 5 && w.has(b) == 5 })
	if got, err := assigner.Unassignable(t.Context()); err != nil || !slices.Equal(got, []assign.Unassignable{{Rows: 20, Reason: assign.Full}}) {
		t.Errorf("what cannot be assigned: got %+v, %v", got, err)
	}
	most := 0
	w.Await("all done", func() bool {
		most = max(most, w.has(a), w.has(b))
		w.Exec(`UPDATE {schema}.jobs SET state = 'done' WHERE id IN (SELECT id FROM {schema}.jobs WHERE state = 'assigned' LIMIT 3)`)
		return w.count(`state = 'done'`) == 30
	})
	if most > 5 {
		t.Errorf("a node had %d rows; the maximum is 5", most)
	}
}

// Rows whose capability no node has wait, are reported, and delay no other
// rows; they go to the first node that has the capability.
func TestRowsWithoutCapableNodeWait(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	a, both := w.worker("a", "a"), w.worker("both", "a", "slow")
	leader := w.scheduler("leader")
	w.sees(leader, cluster.Active, a, both)
	if err := both.SetStatus(t.Context(), cluster.Draining); err != nil {
		t.Fatal(err)
	}
	config := w.config()
	config.BatchSize = 2
	assigner := w.assigner(leader, config)
	w.run(assigner)
	w.add(1100, "quantum")
	w.add(5, "slow")
	w.add(3, "a")
	w.Await("the others assigned", func() bool { return w.has(a) == 3 })
	want := []assign.Unassignable{
		{Capability: "quantum", Rows: 1000, Reason: assign.NoNode}, {Capability: "slow", Rows: 5, Reason: assign.NotActive},
	}
	if got, err := assigner.Unassignable(t.Context()); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	quantum := w.worker("quantum", "quantum")
	w.Await("as many as it may have", func() bool { return w.has(quantum) == 100 })
	if err := both.Undrain(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Await("the rest", func() bool { return w.has(both) == 5 })
}

// If rows need more capabilities than are read, none that a node has is hidden.
func TestManyUnknownCapabilitiesHideNoRow(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	a := w.worker("a", "zebra")
	w.run(w.assigner(w.scheduler("leader"), w.config()))
	w.Exec(`INSERT INTO {schema}.jobs (capability) SELECT 'garbage ' || n FROM generate_series(1, 1500) n`)
	w.add(3, "zebra")
	w.Await("those that can be done", func() bool { return w.has(a) == 3 })
}

// Rows are assigned in the order of their priority.
func TestRowsAreAssignedByPriority(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	w.Exec(`INSERT INTO {schema}.jobs (capability, priority)
		SELECT CASE WHEN n % 2 = 0 THEN 'a' ELSE '' END, nullif(n, 7) FROM generate_series(1, 20) n`)
	config := w.config()
	config.MaxPerNode, config.BatchSize = 6, 2
	a := w.worker("a", "a")
	w.run(w.assigner(w.scheduler("leader"), config))
	w.Await("all places taken", func() bool { return w.has(a) == 6 })
	if n := w.count(`state = 'assigned' AND priority > 14`); n != 6 {
		t.Errorf("only %d of the first 6 rows were assigned: %s", n, w.dump())
	}
}

// A row that was begun too often is dead until it is replayed.
func TestRowBegunTooOftenIsDead(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	a := w.worker("a")
	config := w.config()
	config.MaxAttempts = 3
	w.run(w.assigner(w.scheduler("leader"), config))
	w.add(4, "")
	begun := map[int64]int{}
	w.Await("death of all", func() bool {
		w.begin(a)
		rows, err := w.Pool.Query(t.Context(), pgtest.SQL(w.Backend, `UPDATE {schema}.jobs SET state = 'pending', node_id = NULL WHERE state = 'running' RETURNING id`))
		if err != nil {
			t.Fatal(err)
		}
		failed, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range failed {
			begun[id]++
		}
		return w.count(`state = 'dead'`) == 4
	})
	for id, n := range begun {
		if n != 3 {
			t.Errorf("row %d was begun %d times; 3 are the most", id, n)
		}
	}
	if n := w.count(`node_id IS NOT NULL OR attempts <> 3 OR assignment <> 2 + (SELECT term FROM {terms} WHERE role = 'assigner')`); n > 0 {
		t.Errorf("dead rows: %s", w.dump())
	}

	if n, err := assign.Replay(t.Context(), w.Pool, config, 0, "2", "3", "99"); n != 2 || err != nil {
		t.Errorf("%d rows were replayed: %v", n, err)
	}
	w.Await("those again assigned", func() bool {
		return w.count(`state = 'assigned' AND id IN (2, 3) AND attempts = 1 AND assignment = 3 + (SELECT term FROM {terms} WHERE role = 'assigner')`) == 2
	})
	if n, err := assign.Replay(t.Context(), w.Pool, config, 1); n != 1 || err != nil {
		t.Errorf("%d rows were replayed: %v", n, err)
	}
	if n := w.count(`state = 'dead' AND id = 4`); n != 1 {
		t.Errorf("the second dead row was replayed before the first: %s", w.dump())
	}
	for name, bad := range map[string]func() (int, error){
		"an id":    func() (int, error) { return assign.Replay(t.Context(), w.Pool, config, 0, "x' OR true") },
		"a number": func() (int, error) { return assign.Replay(t.Context(), w.Pool, config, -1) },
	} {
		if _, err := bad(); !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%s that cannot be: got %v", name, err)
		}
	}
}

// A node is notified of its rows as they are assigned.
func TestListenWakesOnAssignment(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	a := w.worker("a")
	w.run(w.assigner(w.scheduler("leader"), w.config()))
	woken := make(chan int, 100)
	listening := make(chan error, 1)
	ctx, stop := withCancel(t)
	go func() {
		listening <- assign.Listen(ctx, w.Backend, a.ID(), func() { woken <- w.has(a) })
	}()
	if n := <-woken; n != 0 {
		t.Fatalf("the node has %d rows before there are any", n)
	}
	w.add(1, "")
	if n := testkit.Receive(t, woken, patience, "the node was not notified"); n != 1 {
		t.Errorf("the node was notified when it had %d rows", n)
	}
	stop()
	if err := <-listening; err != nil {
		t.Error(err)
	}
}

func TestNewRejectsInvalidConfig(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	leader := w.scheduler("leader")
	for name, change := range map[string]func(*assign.Config){
		"no table":               func(c *assign.Config) { c.Table = nil },
		"an empty table":         func(c *assign.Config) { c.Table = pgx.Identifier{"", "jobs"} },
		"a table of three parts": func(c *assign.Config) { c.Table = pgx.Identifier{"a", "b", "c"} },
		"a zero byte":            func(c *assign.Config) { c.Columns.ID = "i\x00d" },
		"no UTF-8":               func(c *assign.Config) { c.States.Dead = "\xff" },
		"a column twice":         func(c *assign.Config) { c.Columns.Priority = "id" },
		"a state twice":          func(c *assign.Config) { c.States.Running = "assigned" },
		"no places":              func(c *assign.Config) { c.MaxPerNode = -1 },
		"no attempts":            func(c *assign.Config) { c.MaxAttempts = -1 },
		"too many attempts":      func(c *assign.Config) { c.MaxAttempts = 1_000_001 },
		"no batch":               func(c *assign.Config) { c.BatchSize = -1 },
		"too large a batch":      func(c *assign.Config) { c.BatchSize = 10_001 },
		"a busy poll":            func(c *assign.Config) { c.PollInterval = time.Microsecond },
	} {
		config := w.config()
		change(&config)
		if _, err := assign.New(leader, w.Pool, config); !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%s: New returns %v", name, err)
		}
		if _, err := assign.Setup(w.Backend, config); !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%s: Setup returns %v", name, err)
		}
		if _, err := assign.Grants(w.Backend, config, "app"); !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%s: Grants returns %v", name, err)
		}
	}
	config := w.config()
	config.Role = tenure.NamedRole("\x00")
	if _, err := assign.New(leader, w.Pool, config); !errors.Is(err, tenure.ErrInvalidRole) {
		t.Errorf("a role that cannot be: got %v", err)
	}
}

func TestNewAssignerRejectsOtherBackends(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	mortal := w.worker("a")
	if _, err := assign.New(mortal.Member, w.Pool, w.config()); !errors.Is(err, tenure.ErrUnsupported) {
		t.Errorf("%v; want ErrUnsupported", err)
	}
}
