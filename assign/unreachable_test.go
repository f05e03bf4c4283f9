package assign_test

import (
	"testing"

	"github.com/exactly-one/tenure/assign"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// A leader whose pool cannot reach the database, although its session can, gives the role
// up: another node assigns the rows.
func TestLeaderWhosePoolIsCutOffGivesUp(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	w := newJobs(t)
	pool, network := w.PoolThroughNetwork()
	worker := w.worker("worker")
	sick, err := assign.New(w.scheduler("sick"), pool, w.config())
	if err != nil {
		t.Fatal(err)
	}
	w.run(sick)
	w.add(1, "")
	w.Await("the first row", func() bool { return w.has(worker) == 1 })
	w.run(w.assigner(w.scheduler("healthy"), w.config()))
	if err := network.Close(); err != nil {
		t.Fatal(err)
	}
	w.add(1, "")
	w.Await("the row after the cut", func() bool { return w.has(worker) == 2 })
	const cause = `SELECT count(*) FROM {history} WHERE end_cause LIKE '%work of the role cannot reach the database%'`
	if n := one[int](w, cause); n != 1 {
		t.Errorf("%d terms say that the database could not be reached, want 1", n)
	}
}
