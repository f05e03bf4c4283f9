package processor_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/processor"
)

// epochs runs a processor until it has handled so many events, and returns the
// epoch that the last one had.
func (w *world) epochs(name string, config processor.Config, events int) int64 {
	w.Helper()
	var last atomic.Int64
	node, err := tenure.Open(w.Context(), w.backend, tenure.Config{Name: name, Lease: time.Second})
	w.must(err)
	config.Name, config.PollInterval, config.MaxPollInterval = "counts", 5*time.Millisecond, 50*time.Millisecond
	config.Handle = func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
		for _, event := range batch {
			last.Store(event.Epoch)
		}
		return w.fill(ctx, tx, batch)
	}
	stop := w.group(node, config)
	w.Await("the events", func() bool { return len(w.numbers()) >= events })
	stop()
	w.must(node.Close(w.Context()))
	return last.Load()
}

// The epoch does not change while transaction ids only increase, whichever node
// leads. It grows when they may be lower: on a server that has crashed or was
// promoted, after a repair, and when the row is created again.
func TestEpochGrowsAfterServerChange(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Fresh: true})
	w := newWorldOn(t, server)
	begun := time.Now().Add(-time.Minute).UnixMilli()
	w.append(1)
	first := w.epochs("a", processor.Config{}, 1)
	if first < begun || first > time.Now().Add(time.Minute).UnixMilli() {
		t.Errorf("the first epoch is %d", first)
	}
	w.append(2)
	if second := w.epochs("b", processor.Config{}, 2); second != first {
		t.Errorf("another leader has the epoch %d; the first had %d", second, first)
	}
	server.Restart(t, "fast")
	w.pool.Reset()
	w.append(3)
	if third := w.epochs("c", processor.Config{}, 3); third != first {
		t.Errorf("after a restart the epoch is %d; before it was %d", third, first)
	}
	server.Restart(t, "immediate")
	w.pool.Reset()
	w.append(4)
	fourth := w.epochs("d", processor.Config{}, 4)
	if fourth <= first {
		t.Errorf("after a crash the epoch is %d; before it was %d", fourth, first)
	}
	w.Exec(pgtest.SQL(w.backend, "UPDATE {processors} SET system_identifier = 17")) // Set by hand: as if restored from another server.
	_, err := w.management().Repair(t.Context(), "counts", "ann")
	w.must(err)
	w.append(5)
	fifth := w.epochs("e", processor.Config{}, 5)
	if fifth <= fourth {
		t.Errorf("after a repair the epoch is %d; before it was %d", fifth, fourth)
	}
	w.Exec(pgtest.SQL(w.backend, "DELETE FROM {processors}")) // Set by hand: the row is one that an operator deletes.
	if sixth := w.epochs("f", processor.Config{}, 10); sixth <= fifth {
		t.Errorf("in a row made anew the epoch is %d; before it was %d", sixth, fifth)
	}
}

// An old primary returns and does not know of the other one, but the process
// that has seen both does.
// Set by hand: the processor would need two servers and a promotion of each.
// TestTermNumbersGrowOnOldPrimary lets an old primary return.
func TestEpochGrowsWhenAnOldServerReturns(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	w := newWorld(t)
	node := w.Node("a", tenure.Config{})
	group, err := processor.NewGroup(node, tenure.NamedRole("views"), w.pool, processor.GroupConfig{})
	w.must(err)
	w.must(group.Add(processor.Config{Name: "counts", Log: w.store.Log(), Handle: w.fill}))
	postgrestest.Run(t, group.Run)
	type row struct {
		epoch, term     int64
		lineage, server string
	}
	read := func() (r row) {
		w.must(w.pool.QueryRow(t.Context(), pgtest.SQL(w.backend, "SELECT epoch, term, lineage, (SELECT id::text FROM {server}) FROM {processors}")).
			Scan(&r.epoch, &r.term, &r.lineage, &r.server))
		return r
	}
	next := func(after int64) row {
		if after > 0 {
			w.must(group.Election().StepDown(t.Context()))
		}
		w.Await("the next term", func() bool { return w.exists("counts") && w.show("counts").Term > after && w.show("counts").Busy })
		return read()
	}
	first := next(0)
	w.Exec(pgtest.SQL(w.backend, "UPDATE {server} SET id = gen_random_uuid()"))
	second := next(first.term)
	if second.epoch <= first.epoch || second.lineage == first.lineage {
		t.Fatalf("on another server: %+v; before: %+v", second, first)
	}
	w.Exec(pgtest.SQL(w.backend, "UPDATE {server} SET id = $1"), first.server)
	w.Exec(pgtest.SQL(w.backend, "UPDATE {processors} SET epoch = $1, lineage = $2"), first.epoch, first.lineage)
	third := next(second.term)
	if third.epoch <= second.epoch || third.lineage != first.lineage {
		t.Errorf("on the old server again: %+v; before: %+v, %+v", third, first, second)
	}
	if fourth := next(third.term); fourth.epoch != third.epoch {
		t.Errorf("the epoch became %d on the same server; it was %d", fourth.epoch, third.epoch)
	}
}

// TestEpochRepeatsOnOldServerForAnotherProcess: an old primary returns with its earlier
// data, and the process that leads has never worked on the newer one. Nothing there shows
// the newer epoch, so the earlier one repeats.
// Set by hand: the processor would need two servers and a promotion of each.
// TestTermNumbersGrowOnOldPrimary lets an old primary return.
func TestEpochRepeatsOnOldServerForAnotherProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1)
	first := w.epochs("a", processor.Config{}, 1)
	var server, lineage string
	w.must(w.pool.QueryRow(t.Context(), pgtest.SQL(w.backend, "SELECT (SELECT id::text FROM {server}), lineage FROM {processors}")).Scan(&server, &lineage))
	w.Exec(pgtest.SQL(w.backend, "UPDATE {server} SET id = gen_random_uuid()")) // another primary
	w.append(2)
	second := w.epochs("b", processor.Config{}, 2)
	if second <= first {
		t.Fatalf("on another server the epoch is %d; before it was %d", second, first)
	}
	w.Exec(pgtest.SQL(w.backend, "UPDATE {server} SET id = $1"), server)
	w.Exec(pgtest.SQL(w.backend, "UPDATE {processors} SET epoch = $1, lineage = $2"), first, lineage)
	w.append(3)
	if third := w.epochs("c", processor.Config{}, 3); third != first {
		t.Errorf("on the old server again, another process has the epoch %d; the old one was %d, the newer %d", third, first, second)
	}
}
