package processor_test

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/processor"
)

// TestWorkContinuesAmongDeadRows: while VACUUM does not run and a transaction keeps dead
// rows, a processor handles its events. Its updates stay HOT, and after VACUUM its row costs
// as little as before.
func TestWorkContinuesAmongDeadRows(t *testing.T) {
	pgtest.Long(t) // not in parallel: transactions of other tests would keep dead rows, too
	const (
		updates = 6000 // five minutes of 20 batches a second
		blocks  = 12   // of the row and its index, some of them with a second version
	)
	w := newWorld(t)
	w.Exec("ALTER TABLE {processors} SET (autovacuum_enabled = false)")
	w.group(w.Node("a", tenure.Config{}), processor.Config{Name: "counts", Handle: w.fill})
	w.append(1)
	w.Await("the first event", func() bool { return slices.Equal(w.numbers(), []int{1}) })
	cost := func() int {
		t.Helper()
		var plan []struct {
			Plan struct {
				Hit  int `json:"Shared Hit Blocks"`
				Read int `json:"Shared Read Blocks"`
			}
		}
		sql := pgtest.SQL(w.backend, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT cursor_position FROM {processors} WHERE name = 'counts'")
		w.must(w.pool.QueryRow(t.Context(), sql).Scan(&plan))
		return plan[0].Plan.Hit + plan[0].Plan.Read
	}
	if got := cost(); got > blocks {
		t.Fatalf("the row costs %d blocks before, want at most %d", got, blocks)
	}
	long, err := w.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	w.must(err)
	defer func() { _ = long.Rollback(context.WithoutCancel(t.Context())) }() // does nothing after the end
	_, err = long.Exec(t.Context(), "SELECT FROM pg_class")
	w.must(err)
	// Set by hand: the versions of a row that its batches leave, for their number.
	_, err = w.pool.Exec(t.Context(), pgtest.SQL(w.backend, "DO $$ BEGIN FOR i IN 1..6000 LOOP UPDATE {processors} SET updated_at = clock_timestamp(); COMMIT; END LOOP; END $$"))
	w.must(err)
	w.append(2, 3)
	w.Await("events among dead rows", func() bool { return slices.Equal(w.numbers(), []int{1, 2, 3}) })
	among := cost()
	w.Await("the share of HOT updates to be over 90%", func() bool {
		return postgrestest.Value[bool](w.Installation, `
			SELECT n_tup_upd >= $1 AND n_tup_hot_upd > 0.9 * n_tup_upd FROM pg_stat_user_tables WHERE relid = {processors:regclass}`, updates)
	})
	w.must(long.Rollback(t.Context()))
	w.Exec("VACUUM {processors}")
	w.append(4)
	w.Await("an event after VACUUM", func() bool { return slices.Equal(w.numbers(), []int{1, 2, 3, 4}) })
	t.Logf("the row costs %d blocks among dead rows, and %d after VACUUM", among, cost())
	if got := cost(); got > blocks || among <= blocks {
		t.Errorf("the row costs %d blocks among dead rows and %d after VACUUM; want more than %d, and at most so many", among, got, blocks)
	}
}
