package processor_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/processor"
)

// settle waits until no transaction is open that began before the last event, also of
// other tests.
func (w *world) settle() {
	w.Helper()
	w.Await("the events to be final", func() (final bool) {
		const sql = "SELECT coalesce(max(transaction_id) < pg_snapshot_xmin(pg_current_snapshot()), true) FROM {events}"
		w.must(w.pool.QueryRow(w.Context(), pgtest.SQL(w.backend, sql)).Scan(&final))
		return final
	})
}

// appendAt appends an event that occurred some seconds after the first hour of a year.
func (w *world) appendAt(in eventstore.Executor, number, second int) {
	w.Helper()
	event := newEvent(number)
	event.OccurredAt = clock(second)
	w.must(w.store.Append(w.Context(), in, event))
}

// patient keeps its session on a busy machine.
var patient = tenure.Config{Lease: time.Minute}

func clock(second int) time.Time { return time.Date(2026, 1, 1, 1, 0, second, 0, time.UTC) }

func (w *world) begin() pgx.Tx {
	w.Helper()
	tx, err := w.pool.Begin(w.Context())
	w.must(err)
	w.Cleanup(func() { _ = tx.Rollback(w.Context()) }) // does nothing after the commit
	return tx
}

// counts is a processor that begins at a start.
func (w *world) counts(start processor.Start) processor.Config {
	return processor.Config{Name: "counts", Handle: w.fill, Start: start, PollInterval: 10 * time.Millisecond, MaxPollInterval: 50 * time.Millisecond}
}

func (w *world) awaitClaim() {
	w.Helper()
	w.Await("the first claim", func() bool { return w.show("counts").Term > 0 })
}

// wantNumbers waits until the last of the wanted events is handled.
func (w *world) wantNumbers(want ...int) {
	w.Helper()
	w.Await("the last event", func() bool { return slices.Contains(w.numbers(), want[len(want)-1]) })
	if got := w.numbers(); !slices.Equal(got, want) {
		w.Errorf("handled %v; want the events %v", got, want)
	}
}

// A processor that starts at the end receives what commits later, also of a
// transaction that was open, and what that one holds.
func TestStartAtTheEndReceivesOpenTransactions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1, 2)
	w.settle()
	open := w.begin()
	w.must(w.store.Append(t.Context(), open, newEvent(3)))
	w.append(4) // committed, but after the open transaction in the log
	w.group(w.Node("a", patient), w.counts(processor.Start{End: true}))
	w.awaitClaim()
	w.append(5)
	w.must(open.Commit(t.Context()))
	w.wantNumbers(3, 4, 5)
}

func TestStartAtEndOfEmptyLogReceivesOpenTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	open := w.begin()
	w.must(w.store.Append(t.Context(), open, newEvent(1)))
	w.group(w.Node("a", patient), w.counts(processor.Start{End: true}))
	w.awaitClaim()
	w.must(open.Commit(t.Context()))
	w.wantNumbers(1)
}

// The first claim of several nodes decides, and no later one changes it.
func TestStartIsThatOfTheFirstClaim(t *testing.T) {
	t.Parallel()
	for name, roles := range map[string][2]string{"one role": {"views", "views"}, "two roles": {"views", "others"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.append(1, 2)
			w.settle()
			stops := []func(){
				w.under(roles[0], w.Node("a", patient), w.counts(processor.Start{End: true})),
				w.under(roles[1], w.Node("b", patient), w.counts(processor.Start{End: true})),
			}
			w.awaitClaim()
			w.append(3)
			w.wantNumbers(3)
			for _, stop := range stops {
				stop()
			}
			w.append(4)
			w.under(roles[0], w.Node("c", patient), w.counts(processor.Start{After: processor.Cursor{Transaction: 3}}))
			w.wantNumbers(3, 4)
		})
	}
}

// No event of the time or later is missed, whatever its place in the log.
func TestStartAtTimeMissesNoLaterEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for number, second := range []int{0, 20, 10, 30} {
		w.appendAt(w.pool, number, second)
	}
	w.settle()
	open := w.begin()
	w.appendAt(open, 4, 40)
	w.appendAt(w.pool, 5, 50)
	w.group(w.Node("a", patient), w.counts(processor.Start{Time: clock(20)}))
	w.wantNumbers(1, 2, 3)
	w.must(open.Commit(t.Context()))
	w.wantNumbers(1, 2, 3, 4, 5)
}

// An event of an open transaction can be the first of a time, although an earlier one
// in time is after it in the log.
func TestStartAtATimeReceivesOpenTransactions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.appendAt(w.pool, 1, 10)
	w.settle()
	open := w.begin()
	w.appendAt(open, 2, 40)
	w.appendAt(w.pool, 3, 20)
	w.appendAt(w.pool, 4, 50)
	w.group(w.Node("a", patient), w.counts(processor.Start{Time: clock(30)}))
	w.awaitClaim()
	w.must(open.Commit(t.Context()))
	w.wantNumbers(2, 3, 4)
}

func TestStartAfterCursorSkipsEarlierEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1, 2, 3)
	var after processor.Cursor
	const second = "SELECT transaction_id, position FROM {events} ORDER BY position OFFSET 1 LIMIT 1"
	w.must(w.pool.QueryRow(t.Context(), pgtest.SQL(w.backend, second)).Scan(&after.Transaction, &after.Position))
	w.group(w.Node("a", patient), w.counts(processor.Start{After: after}))
	w.wantNumbers(3)
}

// A start that cannot be found is logged once, and nothing is handled or stored.
func TestUnknownStartHandlesNothing(t *testing.T) {
	t.Parallel()
	timeless := processor.LogFromQuery("timeless", `
		SELECT 3::text::xid8 AS transaction_id, 1 AS position, '' AS type, '{}'::text[] AS tags, 'null'::jsonb AS data,
			NULL::timestamptz AS occurred_at, NULL::uuid AS correlation_id, NULL::uuid AS causation_id`)
	for name, c := range map[string]struct {
		log   processor.Log
		start processor.Start
		says  string
	}{
		"a log without times": {timeless, processor.Start{Time: clock(0)}, "has an event without a time"},
		"a time in the future": {
			start: processor.Start{Time: time.Now().AddDate(1, 0, 0)}, says: "in the future",
		},
		"a cursor that no event can have": {
			start: processor.Start{After: processor.Cursor{Transaction: 1 << 40, Position: 1}}, says: "where no event can be yet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.append(1)
			log, config := &journal{}, w.counts(c.start)
			config.Log = c.log
			w.group(w.nodeLogging(log), config)
			w.Await("the error", func() bool { return log.has(c.says) })
			claims := log.count("the processor cannot begin with its configuration")
			if s := w.show("counts"); s.Term != 0 || s.Led || len(w.numbers()) > 0 || claims != 1 {
				t.Errorf("the processor is %+v; handled %v; logged %d times", s, w.numbers(), claims)
			}
		})
	}
}

// The ids of a log that was restored from another cluster cannot be compared.
func TestStartInARestoredLogIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Exec("INSERT INTO {events} (transaction_id, type) VALUES ('1099511627776', 'counted')")
	log := &journal{}
	w.group(w.nodeLogging(log), w.counts(processor.Start{End: true}))
	w.Await("the error", func() bool { return log.has("repair another processor of the log") })
	if s := w.show("counts"); s.Name != "" {
		t.Errorf("the processor is %+v; want none", s)
	}
}

func (j *journal) count(text string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return bytes.Count(j.text.Bytes(), []byte(text))
}
