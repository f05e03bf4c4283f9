package processor_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/processor"
)

// An insert into a user's table wakes its processors.
func TestTriggerWakesProcessors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	table := pgx.Identifier{w.Schema, `its "log"`}
	w.Exec("CREATE TABLE " + table.Sanitize() + ` (
		id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
		number bigint NOT NULL,
		UNIQUE (xid, id)
	)`)
	for range 2 { // it can be run again
		w.Exec(processor.TriggerSQL(w.backend, table))
	}
	log := processor.LogFromQuery("its log", `
		SELECT xid AS transaction_id, id AS position, 'counted' AS type, '{}'::text[] AS tags, to_jsonb(number) AS data,
			clock_timestamp() AS occurred_at, NULL::uuid AS correlation_id, NULL::uuid AS causation_id
		FROM `+table.Sanitize())
	add := func(number int) { w.Exec("INSERT INTO "+table.Sanitize()+" (number) VALUES ($1)", number) }
	add(1)
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", Log: log, Handle: w.fill, PollInterval: time.Hour, MaxPollInterval: time.Hour,
	})
	w.Await("the first", func() bool { return len(w.numbers()) == 1 })
	w.Await("listening", func() bool {
		add(2)
		return len(w.numbers()) > 1
	})
	if s := w.show("counts"); s.Log != "its log" {
		t.Errorf("the log is called %q", s.Log)
	}
}

// An insert by another program into the table of package eventstore wakes processors, which
// do not poll here.
func TestInsertIntoEventsWakesProcessors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	insert := func(number int) {
		w.Exec("INSERT INTO "+pgx.Identifier{w.Schema, "tenure_events"}.Sanitize()+" (type, data) VALUES ('counted', to_jsonb($1::bigint))", number)
	}
	insert(1)
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", Handle: w.fill, PollInterval: time.Hour, MaxPollInterval: time.Hour,
	})
	w.Await("the first", func() bool { return len(w.numbers()) == 1 })
	w.Await("listening", func() bool {
		w.append(2)
		return len(w.numbers()) > 1
	})
	insert(3)
	w.Await("an inserted event wakes the processor", func() bool { return slices.Contains(w.numbers(), 3) })
}
