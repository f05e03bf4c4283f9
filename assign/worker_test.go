package assign_test

import (
	"errors"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// The example's worker processes the rows that it is assigned, and none that
// were taken from it.
func TestExampleWorkerFinishesOnlyItsRows(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	w.Exec(`ALTER TABLE {schema}.jobs ADD payload bytea NOT NULL DEFAULT 'four'`)
	w.Exec(`CREATE TABLE {schema}.results (job bigint PRIMARY KEY, result integer)`)
	a := w.worker("a")
	w.run(w.assigner(w.scheduler("leader"), w.config()))
	one := worker{a.Member, pgtest.Pool(t, w.Server.DSN()+"&search_path="+w.Schema)}
	w.add(12, "")
	w.Await("all assigned", func() bool { return w.has(a) == 12 })
	if some, err := one.round(t.Context()); !some || err != nil {
		t.Fatal(some, err)
	}
	if n := w.count(`state = 'done' AND node_id IS NULL AND id IN (SELECT job FROM {schema}.results WHERE result = 4)`); n != 10 {
		t.Errorf("%d jobs were done; one round does 10", n)
	}

	jobs, err := one.begin(t.Context())
	if err != nil || len(jobs) != 2 {
		t.Fatal(jobs, err)
	}
	if err := one.giveBack(t.Context(), jobs[0]); err != nil {
		t.Fatal(err)
	}
	w.Await("the first given again", func() bool {
		return w.count(`state = 'assigned' AND assignment = 1 + (SELECT term FROM {terms} WHERE role = 'assigner') AND attempts = 2`) == 1
	})
	if err := one.finish(t.Context(), jobs[0]); !errors.Is(err, errTaken) {
		t.Errorf("what was given back is finished: %v", err)
	}
	a.kill()
	w.Await("all taken back", func() bool { return w.count(`state = 'pending'`) == 2 })
	if err := one.finish(t.Context(), jobs[1]); !errors.Is(err, errTaken) {
		t.Errorf("what was taken is finished: %v", err)
	}
	if err := one.giveBack(t.Context(), jobs[1]); err != nil {
		t.Fatal(err)
	}
	if n := w.count(`state = 'pending' AND attempts = 1`); n != 2 {
		t.Errorf("what was taken was given back: %s", w.dump())
	}
	if n := w.count(`id IN (SELECT job FROM {schema}.results)`); n != 10 {
		t.Errorf("there are %d results; 10 jobs were done", n)
	}
}
