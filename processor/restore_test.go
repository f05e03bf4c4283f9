package processor_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgserver"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retry"
)

// consume uses up transaction ids of a server, as years of work do.
func (w *world) consume(ids int) {
	w.Helper()
	w.Exec(fmt.Sprintf("DO $$ BEGIN FOR i IN 1..%d LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$", ids))
}

// appendInverted appends two events in transactions of which the second one, by
// its id, commits first and has the lower position.
func (w *world) appendInverted(first, second int) {
	w.Helper()
	ctx := w.Context()
	begin := func() pgx.Tx {
		tx, err := w.pool.Begin(ctx)
		w.must(err)
		_, err = tx.Exec(ctx, "SELECT pg_current_xact_id()")
		w.must(err)
		return tx
	}
	one, two := begin(), begin()
	w.must(w.store.Append(ctx, two, newEvent(second)))
	w.must(two.Commit(ctx))
	w.must(w.store.Append(ctx, one, newEvent(first)))
	w.must(one.Commit(ctx))
}

// place returns the position of the event with a number in the log.
func (w *world) place(number int) (at processor.Cursor) {
	w.Helper()
	w.must(w.pool.QueryRow(w.Context(), pgtest.SQL(w.backend, "SELECT transaction_id, position FROM {events} WHERE data = to_jsonb($1::bigint)"), number).
		Scan(&at.Transaction, &at.Position))
	return at
}

// dumpInto copies a schema into another server, as operators do.
func (w *world) dumpInto(from, to *pgtest.Server) {
	w.Helper()
	installation, err := pgserver.Find("")
	w.must(err)
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	dump := exec.CommandContext(ctx, filepath.Join(installation.Bin, "pg_dump"), "--no-owner", "--schema", w.Schema, from.DSN())
	restore := exec.CommandContext(ctx, filepath.Join(installation.Bin, "psql"), "--quiet", "--set", "ON_ERROR_STOP=1", to.DSN())
	var complaints strings.Builder
	dump.Stderr, restore.Stderr = &complaints, &complaints
	restore.Stdin, err = dump.StdoutPipe()
	w.must(err)
	w.must(restore.Start())
	if err := errors.Join(dump.Run(), restore.Wait()); err != nil {
		w.Fatalf("%v: %s", err, complaints.String())
	}
}

// awaitRefusal waits until a processor has failed for its log, with the command
// that repairs it.
func (w *world) awaitRefusal(name string) {
	w.Helper()
	w.Await("the refusal of "+name, func() bool { return w.show(name).Status == processor.Failed })
	s := w.show(name)
	if !strings.Contains(s.LastError, "another database cluster") || !strings.Contains(s.LastError, "tenure processor repair "+name) || s.Busy {
		w.Errorf("refused with: %+v", s)
	}
}

// sent is a Publish that records its events.
type sent struct{ numbers atomic.Pointer[[]int] }

func (s *sent) publish(_ context.Context, _ *tenure.Term, batch []processor.Event) (int, error) {
	numbers := s.all()
	for _, e := range batch {
		var number int
		if _, err := fmt.Sscan(string(e.Data), &number); err != nil {
			return 0, err
		}
		numbers = append(numbers, number)
	}
	s.numbers.Store(&numbers)
	return len(batch), nil
}

func (s *sent) all() []int {
	if numbers := s.numbers.Load(); numbers != nil {
		return slices.Clone(*numbers)
	}
	return nil
}

// A dump of one cluster is restored into another with lower transaction ids.
// Processors refuse to run, whatever was appended in the meantime, and after
// the repair exactly the unhandled events remain.
func TestRestoredLogIsRefusedUntilRepaired(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	from, to := pgtest.Start(t, pgtest.Options{}), pgtest.Start(t, pgtest.Options{Fresh: true})
	old := newWorldOn(t, from)
	old.consume(20_000)
	old.appendInverted(1, 2)
	old.append(3, 4)
	var mended atomic.Bool
	config := processor.Config{
		Name: "counts", Handle: old.flawed(&mended), PollInterval: 10 * time.Millisecond, MaxPollInterval: 100 * time.Millisecond,
		Poison: processor.PoisonDeadLetter, MaxAttempts: 1, Retry: retry.FixedInterval{Interval: time.Millisecond},
	}
	stop := old.group(old.Node("a", tenure.Config{Lease: time.Second}), config)
	old.Await("the first", func() bool { return slices.Equal(old.numbers(), []int{1, 3, 4}) })
	stop()
	var before sent
	stop = old.group(old.Node("b", tenure.Config{Lease: time.Second}), processor.Config{Name: "late", Publish: before.publish})
	old.Await("the first", func() bool { return slices.Equal(before.all(), []int{1, 2, 3, 4}) })
	stop()
	old.must(old.management().Rewind(t.Context(), "late", old.place(1), "ann"))
	old.appendInverted(5, 6)
	old.dumpInto(from, to)

	w := openWorld(t, to, old.Schema)
	w.append(7)
	w.must(pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error { // in a savepoint, whose id is another one
		if _, err := tx.Exec(t.Context(), "SELECT pg_current_xact_id()"); err != nil {
			return err
		}
		return pgx.BeginFunc(t.Context(), tx, func(tx pgx.Tx) error { return w.store.Append(t.Context(), tx, newEvent(8)) })
	}))
	if w.place(8).Transaction >= w.place(1).Transaction {
		t.Fatalf("the new cluster is not behind: %v, %v", w.place(8), w.place(1))
	}
	config.Handle = w.flawed(&mended)
	stop = w.group(w.Node("c", tenure.Config{Lease: time.Second}), config)
	w.awaitRefusal("counts")
	m := w.management()
	w.must(m.Retry(t.Context(), "counts", "ann")) // does not help
	w.Await("the second refusal", func() bool { return w.show("counts").Status == processor.Failed })
	if got := w.numbers(); !slices.Equal(got, []int{1, 3, 4}) {
		t.Fatalf("handled %v before the repair", got)
	}
	position := w.place(3).Position
	repaired, err := m.Repair(t.Context(), "counts", "ann")
	w.must(err)
	if !slices.Equal(repaired.Processors, []string{"counts", "late"}) || repaired.Events != 8 || !strings.HasSuffix(repaired.Table, "events") {
		t.Errorf("repaired %+v", repaired)
	}
	if w.place(3).Position != position {
		t.Error("the repair changed a position")
	}
	w.Await("the others", func() bool { return slices.Equal(w.numbers(), []int{1, 3, 4, 5, 6, 7, 8}) })
	w.append(9)
	w.Await("a new one", func() bool { return len(w.numbers()) == 8 })
	mended.Store(true)
	n, err := m.Replay(t.Context(), "counts", nil, "ann")
	w.must(err)
	w.Await("the dead letter", func() bool { return slices.Equal(w.numbers(), []int{1, 3, 4, 5, 6, 7, 8, 9, 2}) })
	stop()
	if n != 1 {
		t.Errorf("%d dead letters were replayed", n)
	}

	var after sent
	w.group(w.Node("d", tenure.Config{Lease: time.Second}), processor.Config{Name: "late", Publish: after.publish})
	w.Await("the other processor", func() bool { return slices.Equal(after.all(), []int{2, 3, 4, 5, 6, 7, 8, 9}) })
	if repaired, err = m.Repair(t.Context(), "late", "ann"); err != nil || len(repaired.Processors) != 0 || repaired.Events != 0 {
		t.Errorf("a second repair: %+v, %v", repaired, err)
	}
	changes, err := m.Changes(t.Context(), "late", 1)
	w.must(err)
	if len(changes) != 1 || changes[0].Action != "repair" || changes[0].By != "ann" {
		t.Errorf("the last change is %+v", changes)
	}
}

// Processors without a cursor also refuse the log of another cluster.
func TestRestoredLogIsRefusedWithoutCursor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Exec(pgtest.SQL(w.backend, "INSERT INTO {events} (transaction_id, type, data) VALUES ('1000000000000', 'counted', '1'), ('1000000000001', 'counted', '2')"))
	w.append(3)
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", Handle: w.fill, PollInterval: 10 * time.Millisecond, MaxPollInterval: 100 * time.Millisecond,
	})
	w.awaitRefusal("counts")
	_, err := w.management().Repair(t.Context(), "counts", "ann")
	w.must(err)
	w.Await("all", func() bool { return slices.Equal(w.numbers(), []int{1, 2, 3}) })
}

// A repair during the check of a log is not undone by the result of that check.
func TestRepairDuringCheckOfLogIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Exec(pgtest.SQL(w.backend, "INSERT INTO {events} (transaction_id, type, data) VALUES ('1000000000000', 'counted', '1')"))
	gate := pgtest.Shared(t).Conn(t)
	const key = 471209
	_, err := gate.Exec(t.Context(), "SELECT pg_advisory_lock($1)", key)
	w.must(err)
	// The first read of the log by the check waits for the gate.
	pass := pgx.Identifier{w.Schema, "pass"}.Sanitize()
	w.Exec(fmt.Sprintf(`CREATE FUNCTION %s() RETURNS boolean LANGUAGE plpgsql AS
		$$ BEGIN PERFORM pg_advisory_xact_lock_shared(%d); RETURN true; END $$`, pass, key))
	log := processor.LogFromQuery("gated", pgtest.SQL(w.backend, "SELECT * FROM {events} WHERE "+pass+"()"))
	log.Table = pgtest.SQL(w.backend, "{events}")
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", Log: log, Handle: w.fill, PollInterval: 10 * time.Millisecond, MaxPollInterval: 100 * time.Millisecond,
	})
	w.Await("the check", func() bool {
		var waits bool
		w.must(gate.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = $1 AND NOT granted)", key).Scan(&waits))
		return waits
	})
	repaired, err := w.management().Repair(t.Context(), "counts", "ann")
	w.must(err)
	if repaired.Events != 1 {
		t.Fatalf("%+v", repaired)
	}
	w.must(gate.Close(t.Context()))
	w.Await("the event", func() bool { return slices.Equal(w.numbers(), []int{1}) })
}

// Everything that the old primary did after the replica's last position is lost, both
// from the log and from the cursor. A cursor that is ahead of the log fails with an
// error.
func TestCursorAheadOfLaggingReplicaIsReported(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	replica := primary.Replica(t, pgtest.ReplicaOptions{})
	old := newWorldOn(t, primary)
	config := processor.Config{Name: "counts", PollInterval: 10 * time.Millisecond, MaxPollInterval: 100 * time.Millisecond, Handle: old.fill}
	node, err := tenure.Open(t.Context(), old.backend, tenure.Config{Name: "a", Lease: time.Second})
	old.must(err)
	stop := old.group(node, config)
	old.append(1, 2)
	old.Await("the first", func() bool { return len(old.numbers()) == 2 })
	w := openWorld(t, replica, old.Schema)
	w.Await("replication", func() bool {
		var there bool
		w.must(w.pool.QueryRow(t.Context(), "SELECT to_regclass($1) IS NOT NULL", w.filled).Scan(&there))
		return there && len(w.numbers()) == 2 && w.show("counts").Processed == 2
	})
	replica.Configure(t, map[string]string{"primary_conninfo": "host=127.0.0.1 port=1"})
	old.Await("the end of replication", func() bool {
		var replicas int
		old.must(old.pool.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_replication").Scan(&replicas))
		return replicas == 0
	})
	old.consume(1000)
	old.append(3, 4)
	old.Await("what is lost", func() bool { return len(old.numbers()) == 4 })
	ahead := old.show("counts").Cursor
	epochs := func(w *world) (epoch int64) {
		w.must(w.pool.QueryRow(t.Context(), pgtest.SQL(w.backend, "SELECT epoch FROM {processors}")).Scan(&epoch))
		return epoch
	}
	before := epochs(old)
	stop()
	old.must(node.Close(t.Context()))
	old.pool.Close()
	primary.Stop(t, "immediate")
	replica.Promote(t)

	w.append(5)
	config.Handle = w.fill
	stop = w.group(w.Node("b", tenure.Config{Lease: time.Second}), config)
	w.Await("what is new", func() bool { return slices.Equal(w.numbers(), []int{1, 2, 5}) })
	if epochs(w) <= before {
		t.Errorf("the epoch is %d on the replica, whose transactions are lower; it was %d", epochs(w), before)
	}
	stop()

	w.Exec(pgtest.SQL(w.backend, "UPDATE {processors} SET cursor_transaction = $1::text::xid8, cursor_position = $2"),
		fmt.Sprint(ahead.Transaction), ahead.Position)
	w.append(6)
	w.group(w.Node("c", tenure.Config{Lease: time.Second}), config)
	w.awaitRefusal("counts")
	_, err = w.management().Repair(t.Context(), "counts", "ann")
	w.must(err)
	// The cursor's progress is lost with the old primary: everything that this server has
	// written itself counts as new.
	w.Await("the rest", func() bool { n := w.numbers(); return len(n) > 3 && n[len(n)-1] == 6 })
}
