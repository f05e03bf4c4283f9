package assign_test

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure/cluster"
)

// Rows go evenly to nodes with their capability, and to no other node.
func TestRowsAreSpreadOverCapableNodes(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	a, b, gpu := w.worker("a"), w.worker("b"), w.worker("gpu", "gpu")
	leader := w.scheduler("leader")
	w.run(w.assigner(leader, w.config()))
	w.add(30, "")
	w.Await("all of them assigned", func() bool { return w.count(`state = 'assigned'`) == 30 })
	for _, n := range []node{a, b, gpu} {
		if got := w.has(n); got < 5 || got > 15 {
			t.Errorf("%s has %d of 30 rows", n.Node().Name(), got)
		}
	}
	w.add(20, "gpu")
	w.Await("all of them assigned", func() bool { return w.count(`state = 'assigned'`) == 50 })
	if n := w.count(`capability = 'gpu' AND node_id <> $1`, gpu.ID()); n > 0 {
		t.Errorf("%d rows went to a node that cannot do them", n)
	}
	if n := w.count(`assignment <> (SELECT term FROM {terms} WHERE role = 'assigner') OR attempts <> 1`); n > 0 {
		t.Errorf("%d rows were not assigned once", n)
	}
}

// The rows of a dead node go to other nodes immediately, and those that it had
// begun count as an attempt.
func TestRowsOfDeadNodeAreReassigned(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	a, b, c := w.worker("a", "x"), w.worker("b", "x"), w.worker("c")
	leader := w.scheduler("leader")
	w.sees(leader, cluster.Active, a, b, c)
	w.run(w.assigner(leader, w.config()))
	w.add(40, "x")
	w.Await("all of them assigned", func() bool { return w.has(a) > 0 && w.has(a)+w.has(b) == 40 })
	w.Exec(`UPDATE {schema}.jobs SET state = 'running' WHERE id IN (SELECT id FROM {schema}.jobs WHERE node_id = $1 LIMIT 5)`, a.ID())
	w.settle(a.Member)
	begun := time.Now()
	a.kill()
	w.Await("all at the other node", func() bool { return w.has(b) == 40 })
	took := time.Since(begun)
	t.Logf("after %v", took)
	// The lease would have taken 10 s, and polling patience.
	if took > 5*time.Second {
		t.Errorf("the rows were with the other node after %v", took)
	}
	if n := w.count(`attempts = 2`); n != 5 {
		t.Errorf("%d rows count two attempts; 5 had been begun", n)
	}
}

// A draining node keeps the rows that it has begun until it is drained.
func TestDrainingNodeKeepsBegunRows(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	a, b := w.worker("a"), w.worker("b")
	leader := w.scheduler("leader")
	w.sees(leader, cluster.Active, a, b)
	w.run(w.assigner(leader, w.config()))
	w.add(20, "")
	w.Await("all of them assigned", func() bool { return w.has(a) > 0 && w.has(a)+w.has(b) == 20 })
	w.Exec(`UPDATE {schema}.jobs SET state = 'running' WHERE id IN (SELECT id FROM {schema}.jobs WHERE node_id = $1 LIMIT 3)`, a.ID())
	guard, ok := a.InFlight().Enter()
	if !ok {
		t.Fatal("the node takes no work")
	}
	drained := make(chan error, 1)
	go func() { drained <- a.Drain(w.Context()) }()
	w.Await("what was not begun at the other node", func() bool { return w.has(a) == 3 && w.has(b) == 17 })
	w.add(5, "")
	w.Await("new rows at the other node", func() bool { return w.has(a) == 3 && w.has(b) == 22 })
	guard.Done()
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
	w.Await("the rest at the other node", func() bool { return w.has(b) == 25 })
	if n := w.count(`attempts > 1`); n != 3 {
		t.Errorf("%d rows count more than one attempt; 3 had been begun", n)
	}
}
