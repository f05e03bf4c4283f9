package processor_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/processor"
)

// numberLog is a table of the user, cut into partitions of ten rows.
func (w *world) numberLog() processor.Log {
	w.Helper()
	table := pgx.Identifier{w.Schema, "numbers log"}.Sanitize()
	w.Exec(`CREATE TABLE ` + table + ` (
		xid xid8 NOT NULL DEFAULT pg_current_xact_id(), id bigint GENERATED ALWAYS AS IDENTITY, number integer,
		UNIQUE (xid, id, number)
	) PARTITION BY RANGE (number)`)
	for part := range 5 {
		w.Exec(fmt.Sprintf("CREATE TABLE %s PARTITION OF %s FOR VALUES FROM (%d) TO (%d)",
			pgx.Identifier{w.Schema, fmt.Sprint("part ", part)}.Sanitize(), table, 10*part, 10*part+10))
	}
	return processor.LogFromQuery("numbers", `
		SELECT xid AS transaction_id, id AS position, 'counted' AS type, '{}'::text[] AS tags, to_jsonb(number) AS data,
			NULL::timestamptz AS occurred_at, NULL::uuid AS correlation_id, NULL::uuid AS causation_id
		FROM `+table)
}

// A log may lose rows that were handled, with a partition or by TRUNCATE: later events are
// handled once, in order.
func TestLogMayLoseHandledEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	log, table := w.numberLog(), pgx.Identifier{w.Schema, "numbers log"}.Sanitize()
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", Log: log, Handle: w.fill, PollInterval: 10 * time.Millisecond, MaxPollInterval: 50 * time.Millisecond, BatchSize: 3,
	})
	var want []int
	write := func(from, to int) {
		t.Helper()
		w.Exec(fmt.Sprintf("INSERT INTO %s (number) SELECT generate_series(%d, %d)", table, from, to))
		for number := from; number <= to; number++ {
			want = append(want, number)
		}
		w.Await("the events are handled", func() bool { return len(w.numbers()) >= len(want) })
	}
	write(0, 14)
	w.Exec("ALTER TABLE " + table + " DETACH PARTITION " + pgx.Identifier{w.Schema, "part 0"}.Sanitize())
	w.Exec("DROP TABLE " + pgx.Identifier{w.Schema, "part 0"}.Sanitize())
	write(15, 29)
	w.Exec("TRUNCATE " + table)
	write(30, 39)
	w.Exec("TRUNCATE " + table + " RESTART IDENTITY") // ids begin again; those of transactions do not
	write(40, 49)
	if got := w.numbers(); !slices.Equal(got, want) {
		t.Errorf("handled %v; want %v", got, want)
	}
}
