package assign_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// TestRowsAreAssignedAmongDeadRows: while VACUUM does not run and a transaction keeps dead
// rows, new rows are assigned. After VACUUM a look at the waiting rows costs as little as
// before.
func TestRowsAreAssignedAmongDeadRows(t *testing.T) {
	pgtest.Long(t) // not in parallel: transactions of other tests would keep dead rows, too
	const (
		rows   = 20000 // that were assigned and done before
		blocks = 12    // of a look that finds no waiting row
	)
	w := newJobs(t)
	w.Exec("ALTER TABLE {schema}.jobs SET (autovacuum_enabled = false)")
	quick := func() *postgres.Backend { // a call of a watch keeps dead rows, too
		return w.NewBackend(func(c *postgres.Config) { c.WatchPeriod = time.Second })
	}
	a := w.join(quick(), tenure.Config{Name: "a"}, cluster.Config{Roles: []cluster.NodeRole{cluster.Worker}})
	leader := w.join(quick(), tenure.Config{Name: "leader"}, cluster.Config{Roles: []cluster.NodeRole{cluster.Scheduler}})
	config := w.config()
	config.MaxPerNode, config.BatchSize = rows, 1000
	w.run(w.assigner(leader, config))
	long, err := w.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = long.Rollback(context.WithoutCancel(t.Context())) }() // does nothing after the end
	pgtest.Exec(t, long, "SELECT FROM pg_class")
	cost := func() int {
		t.Helper()
		type plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
		plans := one[[]struct{ Plan plan }](w, `
			EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)
			SELECT id FROM {schema}.jobs WHERE state = 'pending' AND capability = '' ORDER BY priority DESC NULLS LAST, id LIMIT 10`)
		return plans[0].Plan.Hit + plans[0].Plan.Read
	}
	work := func(n int) {
		t.Helper()
		w.add(n, "")
		w.Await("all assigned", func() bool { return w.has(node{Member: a}) == n })
		w.begin(node{Member: a})
		w.Exec(`UPDATE {schema}.jobs SET state = 'done' WHERE state = 'running'`)
	}
	work(10)
	before := cost()
	work(rows)
	among := cost()
	work(10)
	if err := long.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Await("VACUUM to remove the dead rows", func() bool {
		w.Exec("VACUUM {schema}.jobs")
		return cost() <= blocks
	})
	work(10)
	if before > blocks || among <= blocks {
		t.Errorf("a look costs %d blocks, and %d among dead rows; want more than %d only among dead rows", before, among, blocks)
	}
	if n := w.count(`state <> 'done'`); n > 0 {
		t.Errorf("%d rows are not done", n)
	}
}
