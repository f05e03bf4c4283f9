package processor_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/processor"
)

// row is an event of a log, or the position of a cursor.
type row = processor.Cursor

// restore puts rows into a table as a restore does: in one transaction, with the
// ids of another cluster.
func (w *world) restore(table string, rows ...row) {
	w.Helper()
	w.must(pgx.BeginFunc(w.Context(), w.pool, func(tx pgx.Tx) error {
		for _, r := range rows {
			if _, err := tx.Exec(w.Context(), "INSERT INTO "+table+" VALUES ($1::text::xid8, $2)", fmt.Sprint(r.Transaction), r.Position); err != nil {
				return err
			}
		}
		return nil
	}))
}

// addProcessor adds a processor that another cluster has left.
func (w *world) addProcessor(name, table string, system int64, cursor row) {
	w.Helper()
	w.Exec(pgtest.SQL(w.backend, `
		INSERT INTO {processors} (name, kind, role, log, log_table, log_columns, system_identifier, cursor_transaction, cursor_position)
		VALUES ($1, 'processor', 'views', 'own', CASE WHEN $2 = '' THEN '{}' ELSE ARRAY[$3::text, $2] END,
			CASE WHEN $2 = '' THEN '{}' ELSE ARRAY['xid', 'id'] END, $4, $5::text::xid8, $6)`),
		name, table, w.Schema, system, fmt.Sprint(cursor.Transaction), cursor.Position)
}

// left are the positions of the events behind the cursor of a processor, in the
// order of the log.
func (w *world) left(name, table string) []int64 {
	w.Helper()
	cursor := w.show(name).Cursor
	rows, err := w.pool.Query(w.Context(), "SELECT id FROM "+table+" WHERE (xid, id) > ($1::text::xid8, $2) ORDER BY xid, id",
		fmt.Sprint(cursor.Transaction), cursor.Position)
	w.must(err)
	positions, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	w.must(err)
	return positions
}

// handle moves the cursor of a processor behind its next events.
// Set by hand: a repair reads the cursor, and the processor must not run.
func (w *world) handle(name, table string, events int) {
	w.Helper()
	cursor := w.show(name).Cursor
	w.Exec(pgtest.SQL(w.backend, `
		UPDATE {processors} p SET cursor_transaction = next.xid, cursor_position = next.id
		FROM (
			SELECT xid, id FROM `+table+` WHERE (xid, id) > ($2::text::xid8, $3) ORDER BY xid, id OFFSET greatest($4::bigint - 1, 0) LIMIT least(1, $4::bigint)
		) next
		WHERE p.name = $1`), name, fmt.Sprint(cursor.Transaction), cursor.Position, events)
}

// newTable makes a log of one's own, as small as can be.
func (w *world) newTable(name string) (quoted string) {
	w.Helper()
	quoted = pgx.Identifier{w.Schema, name}.Sanitize()
	w.Exec("CREATE TABLE " + quoted + " (xid xid8 NOT NULL DEFAULT pg_current_xact_id(), id bigint NOT NULL, UNIQUE (xid, id))")
	return quoted
}

func (w *world) repair(name string) processor.RepairResult {
	w.Helper()
	repaired, err := w.management().Repair(w.Context(), name, "ann")
	w.must(err)
	return repaired
}

// A log with repeated positions, and with more runs of increasing positions
// than the new cluster has assigned transaction ids.
func TestRepairAssignsMissingTransactionIDs(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	w := newWorldOn(t, pgtest.Start(t, pgtest.Options{}))
	table := w.newTable("own")
	var next uint64
	w.must(w.pool.QueryRow(t.Context(), "SELECT pg_snapshot_xmax(pg_current_snapshot())").Scan(&next))
	var rows []row
	for i := range 2 * next {
		transaction := next/2 + i // in use here too, in part
		if i >= 2*next-10 {
			transaction += 1 << 40
		}
		rows = append(rows, row{transaction, 1}, row{transaction, 2})
	}
	w.restore(table, rows...)
	handled := rows[len(rows)-4] // the first event of a transaction with two
	w.addProcessor("own", "own", 42, handled)

	writer, err := w.pool.Begin(t.Context())
	w.must(err)
	defer writer.Rollback(t.Context())
	run := func(sql string) {
		t.Helper()
		_, err := writer.Exec(t.Context(), sql)
		w.must(err)
	}
	run("SELECT pg_current_xact_id()")
	_, err = w.management().Repair(t.Context(), "own", "ann")
	if pid := fmt.Sprint(writer.Conn().PgConn().PID()); !errors.Is(err, tenure.ErrRefused) || !strings.Contains(err.Error(), pid) {
		t.Errorf("beside an old transaction, PID %s: %v", pid, err)
	}
	run("INSERT INTO " + table + " (id) VALUES (1000)")
	begun := time.Now()
	_, err = w.management().Repair(t.Context(), "own", "ann")
	if took := time.Since(begun); !errors.Is(err, dberr.ErrBusy) || took < 5*time.Second || took > 15*time.Second {
		t.Errorf("beside a writer, it waited for %v: %v; want ErrBusy after 5s", took, err)
	}
	w.must(writer.Rollback(t.Context()))

	repaired := w.repair("own")
	if repaired.Events != int64(len(rows)) {
		t.Errorf("%d of %d events were renumbered", repaired.Events, len(rows))
	}
	if left := w.left("own", table); !slices.Equal(left, []int64{2, 1, 2}) {
		t.Errorf("%d events are left: %v", len(left), left)
	}
	var wrong int
	w.must(w.pool.QueryRow(t.Context(), "SELECT count(*) FROM "+table+" WHERE xid >= pg_snapshot_xmin(pg_current_snapshot())").Scan(&wrong))
	if wrong > 0 {
		t.Errorf("%d events have ids that are still to come", wrong)
	}
}

// After an upgrade with pg_upgrade, which keeps transaction ids, and after a
// restore into a cluster with higher ids, nothing changes.
func TestRepairKeepsValidTransactionIDs(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, pgtest.Start(t, pgtest.Options{}))
	table := w.newTable("own")
	for id := range 5 {
		w.Exec("INSERT INTO "+table+" (id) VALUES ($1)", id)
	}
	var third row
	w.must(w.pool.QueryRow(t.Context(), "SELECT xid, id FROM "+table+" WHERE id = 2").Scan(&third.Transaction, &third.Position))
	w.addProcessor("own", "own", 42, third)
	w.Exec(pgtest.SQL(w.backend, "UPDATE {processors} SET status = 'paused'"))
	repaired := w.repair("own")
	if s := w.show("own"); repaired.Events != 0 || s.Cursor != third || s.Status != processor.Paused || len(repaired.Processors) != 1 {
		t.Errorf("repaired %+v, now %+v", repaired, s)
	}
}

// The log was emptied behind the cursor before the dump: a cursor from another
// cluster says nothing about events that were appended here.
func TestRepairResetsCursorBehindEmptiedLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	table := w.newTable("own")
	w.addProcessor("own", "own", 42, row{Transaction: 1 << 40, Position: 1000})
	w.repair("own")
	if s := w.show("own"); s.Cursor != (row{}) {
		t.Errorf("in an empty log, the cursor is at %v", s.Cursor)
	}
	w.Exec(pgtest.SQL(w.backend, "UPDATE {processors} SET system_identifier = 42, cursor_transaction = '1000000000000'"))
	for id := range 3 {
		w.Exec("INSERT INTO "+table+" (id) VALUES ($1)", id)
	}
	w.repair("own")
	if left := w.left("own", table); !slices.Equal(left, []int64{0, 1, 2}) {
		t.Errorf("left are %v", left)
	}
}

// If the log's table is not known, the error says what to run.
func TestRepairOfUnknownTableSaysWhatToRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	table := w.newTable("own")
	w.restore(table, row{1 << 40, 1}, row{1<<40 + 1, 2})
	w.addProcessor("it's own", "", 42, row{1 << 40, 1})
	w.addProcessor("other", "own", 42, row{})
	_, err := w.management().Repair(t.Context(), "it's own", "ann")
	if !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Fatalf("the repair returned %v", err)
	}
	// Nor is the other one repaired, since the cursor of the first may be on its
	// table.
	if _, err := w.management().Repair(t.Context(), "other", "ann"); !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Fatalf("the repair of the other returned %v", err)
	}
	_, statement, _ := strings.Cut(err.Error(), "position: ")
	statement, _, _ = strings.Cut(statement, "; and repair")
	w.Exec(strings.NewReplacer("SCHEMA", w.Schema, "TABLE", "own", "XID", "xid", "ID", "id").Replace(statement))
	if repaired := w.repair("it's own"); len(repaired.Processors) != 2 {
		t.Errorf("repaired %+v", repaired)
	}
	if left := w.left("it's own", table); !slices.Equal(left, []int64{2}) {
		t.Errorf("left are %v", left)
	}
}

func TestRepairReportsMissingPrivileges(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	w := newWorld(t)
	table := w.newTable("own")
	w.restore(table, row{1 << 40, 1})
	w.addProcessor("own", "own", 42, row{})
	little := processor.NewAdmin(w.backend, pgtest.Pool(t, server.DSNFor(w.user(server), "postgres")))
	if _, err := little.Repair(t.Context(), "own", "ann"); !errors.Is(err, dberr.ErrPrivilege) {
		t.Errorf("without privileges: %v", err)
	}
}

// Whatever was restored, handled and appended: exactly the events that were not
// handled remain, in their order.
func TestRepairKeepsUnhandledEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	rounds := 30
	if testing.Short() {
		rounds = 8
	}
	for i := range rounds {
		name := fmt.Sprint("own", i)
		table := w.newTable(name)
		// At least two transactions, ahead of this cluster.
		var rows []row
		transaction := uint64(1 << 40)
		position := int64(0)
		for range 2 + random.IntN(12) {
			transaction += 1 + random.Uint64N(3)
			for range 1 + random.IntN(3) {
				position++
				rows = append(rows, row{transaction, position})
			}
		}
		// Positions are drawn in another order than transaction ids.
		random.Shuffle(len(rows), func(i, j int) { rows[i].Position, rows[j].Position = rows[j].Position, rows[i].Position })
		ordered := slices.SortedFunc(slices.Values(rows), func(a, b row) int {
			if a.Before(b) {
				return -1
			}
			return 1
		})
		handled := random.IntN(len(rows) + 1)
		cursor := row{}
		if handled > 0 {
			cursor = ordered[handled-1]
		}
		w.restore(table, rows...)
		var want []int64
		for _, r := range ordered[handled:] {
			want = append(want, r.Position)
		}
		for range random.IntN(4) {
			position++
			w.Exec("INSERT INTO "+table+" (id) VALUES ($1)", position)
			want = append(want, position)
		}
		w.addProcessor(name, name, 42, cursor)
		w.repair(name)
		if left := w.left(name, table); !slices.Equal(left, want) {
			t.Fatalf("log %d, %v, of which %d were handled: left are %v; want %v", i, ordered, handled, left, want)
		}

		// Work continues, and later the database cluster is upgraded with pg_upgrade.
		for range random.IntN(4) {
			position++
			w.Exec("INSERT INTO "+table+" (id) VALUES ($1)", position)
			want = append(want, position)
		}
		more := random.IntN(len(want) + 1)
		w.handle(name, table, more)
		w.Exec(pgtest.SQL(w.backend, "UPDATE {processors} SET system_identifier = 43 WHERE name = $1"), name)
		w.repair(name)
		if left := w.left(name, table); !slices.Equal(left, want[more:]) {
			t.Fatalf("log %d, %v, after an upgrade, when %d of %v were handled: left are %v", i, ordered, more, want, left)
		}
	}
}
