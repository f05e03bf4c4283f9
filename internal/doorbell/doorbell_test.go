package doorbell_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/doorbell"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// door is a table whose trigger rings, with readers and writers.
type door struct {
	testing.TB
	server  *pgtest.Server
	schema  string
	channel string
}

func newDoor(t *testing.T, server *pgtest.Server) *door {
	t.Helper()
	d := &door{TB: t, server: server, schema: server.Schema(t)}
	d.channel = d.schema + "_rows"
	d.exec(server.Conn(t), strings.NewReplacer("{s}", d.schema, "{body}", doorbell.TriggerBody, "{channel}", d.channel).Replace(`
		CREATE SCHEMA {s};
		CREATE TABLE {s}.rows (n bigint GENERATED ALWAYS AS IDENTITY);
		CREATE FUNCTION {s}.ring() RETURNS trigger LANGUAGE plpgsql AS $body${body}$body$;
		CREATE TRIGGER rings AFTER INSERT ON {s}.rows FOR EACH STATEMENT EXECUTE FUNCTION {s}.ring('{channel}')`))
	return d
}

func (d *door) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *door) exec(conn *pgx.Conn, sql string) {
	d.Helper()
	_, err := conn.Exec(d.Context(), sql)
	d.must(err)
}

func (d *door) insert(conn *pgx.Conn) {
	d.Helper()
	d.exec(conn, "INSERT INTO "+d.schema+".rows DEFAULT VALUES")
}

// line is the line of a reader, and its connection.
type line struct {
	doorbell.Line
	conn *pgx.Conn
	slot int
}

func (d *door) reader() *line {
	d.Helper()
	conn := d.server.Conn(d)
	d.exec(conn, "LISTEN "+pgx.Identifier{d.channel}.Sanitize())
	l, err := doorbell.On(d.Context(), conn, d.channel)
	d.must(err)
	return &line{l, conn, doorbell.SlotOf(l)}
}

func (d *door) shut(l *line) bool {
	d.Helper()
	shut, err := l.Shut(d.Context())
	d.must(err)
	return shut
}

func (d *door) open(l *line) bool {
	d.Helper()
	open, err := l.Open(d.Context())
	d.must(err)
	return open
}

// rings returns how many notifications a reader has received. Another one, which the
// connection sends to itself, marks the end.
func (d *door) rings(l *line) (n int) {
	d.Helper()
	d.exec(l.conn, "SELECT pg_notify('"+d.channel+"', 'last')")
	for {
		ctx, cancel := context.WithTimeout(d.Context(), 20*time.Second)
		notification, err := l.conn.WaitForNotification(ctx)
		cancel()
		d.must(err)
		if notification.Payload == "last" {
			return n
		}
		n++
	}
}

// A commit notifies if a reader is asleep, whichever slot it has, and not while all are
// awake. The trigger and the expression agree.
func TestWritersNotifyOnlyReadersThatAreAsleep(t *testing.T) {
	t.Parallel()
	d := newDoor(t, pgtest.Shared(t))
	writer := d.server.Conn(t)
	for how, commit := range map[string]func(){
		"trigger":    func() { d.insert(writer) },
		"expression": func() { d.exec(writer, "SELECT "+doorbell.Ring("'"+d.channel+"'::text")) },
	} {
		var readers []*line
		for slot := range doorbell.Slots {
			l := d.reader()
			if readers = append(readers, l); l.slot != slot {
				t.Fatalf("reader %d has the slot %d", slot, l.slot)
			}
			commit()
			if n := d.rings(l); n != 0 {
				t.Errorf("%s: %d notifications while %d readers are awake; want none", how, n, slot+1)
			}
			if !d.shut(l) {
				t.Fatalf("slot %d is not free", slot)
			}
			commit()
			if n := d.rings(l); n != 1 {
				t.Errorf("%s: %d notifications while the reader of slot %d is asleep; want 1", how, n, slot)
			}
			if slot == doorbell.Slots-1 {
				break // it keeps the lock
			}
			if !d.open(l) {
				t.Errorf("slot %d cannot be opened", slot)
			}
		}
		for _, l := range readers {
			d.must(l.conn.Close(t.Context()))
		}
		d.awaitNoLocks()
	}
}

// awaitNoLocks waits until the server has released the locks of closed connections.
func (d *door) awaitNoLocks() {
	d.Helper()
	conn := d.server.Conn(d)
	keys := "SELECT " + fmt.Sprintf(doorbell.Key, "'"+d.channel+"'", "n") + " FROM generate_series(-100, 100) n"
	pgtest.Await(d, 20*time.Second, conn, "SELECT count(*) = 0 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND (classid::bigint << 32 | objid::bigint) IN ("+keys+")")
}

// A reader cannot fall asleep before the transactions have ended that saw it awake and did
// not notify, however they end.
func TestReaderCannotFallAsleepBesideATransactionThatSawItAwake(t *testing.T) {
	t.Parallel()
	d := newDoor(t, pgtest.Start(t, pgtest.Options{Settings: map[string]string{"max_prepared_transactions": "2"}}))
	reader, writer := d.reader(), d.server.Conn(t)
	for _, test := range []struct {
		name          string
		before, after string
	}{
		{"commit", "BEGIN; {insert}", "COMMIT"},
		{"rollback", "BEGIN; {insert}", "ROLLBACK"},
		{"an older snapshot", "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1; {insert}", "COMMIT"},
		{"a savepoint that is released", "BEGIN; SAVEPOINT s; {insert}; RELEASE s", "COMMIT"},
		{"a savepoint that is rolled back", "BEGIN; SAVEPOINT s; {insert}", "ROLLBACK TO s"},
		{"an insert after a savepoint", "BEGIN; SAVEPOINT s; {insert}; ROLLBACK TO s; {insert}", "COMMIT"},
		{"a prepared transaction", "BEGIN; {insert}; PREPARE TRANSACTION 'doorbell'", "COMMIT PREPARED 'doorbell'"},
	} {
		d.exec(writer, strings.ReplaceAll(test.before, "{insert}", "INSERT INTO "+d.schema+".rows DEFAULT VALUES"))
		if d.shut(reader) {
			t.Fatalf("%s: the reader fell asleep before the transaction ended, which has not notified", test.name)
		}
		d.exec(writer, test.after)
		if !d.shut(reader) {
			t.Errorf("%s: the reader cannot fall asleep after the transaction ended", test.name)
		}
		d.open(reader)
		if writer.PgConn().TxStatus() == 'T' {
			d.exec(writer, "ROLLBACK")
		}
	}
	// A transaction that notifies does not keep it awake, whatever it waits for.
	d.shut(reader)
	d.exec(writer, "BEGIN")
	d.insert(writer)
	d.open(reader)
	if !d.shut(reader) {
		t.Error("a transaction that will notify keeps the reader awake")
	}
	d.exec(writer, "COMMIT")
	if n := d.rings(reader); n != 1 {
		t.Errorf("%d notifications; want 1", n)
	}
}

// Readers beyond the number of slots are rung too, also when one of them dies.
func TestReadersBeyondTheSlotsShareTheLast(t *testing.T) {
	t.Parallel()
	d := newDoor(t, pgtest.Shared(t))
	writer := d.server.Conn(t)
	var readers []*line
	for range doorbell.Slots + 1 {
		readers = append(readers, d.reader())
	}
	first, second := readers[doorbell.Slots-1], readers[doorbell.Slots]
	if first.slot != doorbell.Slots-1 || second.slot != doorbell.Slots-1 {
		t.Fatalf("the last readers have the slots %d and %d; want %d", first.slot, second.slot, doorbell.Slots-1)
	}
	if !d.shut(first) || d.shut(second) {
		t.Error("want the first of the two alone to have the lock")
	}
	if d.open(first) {
		t.Error("the first was opened, and the second is rung no more")
	}
	d.insert(writer)
	if n := d.rings(second); n != 1 {
		t.Errorf("the second received %d notifications; want 1", n)
	}
	d.must(first.conn.Close(t.Context()))
	for begun := time.Now(); !d.shut(second); {
		if time.Since(begun) > 20*time.Second {
			t.Fatal("the second cannot follow the first, which has died")
		}
	}
	d.insert(writer)
	if n := d.rings(second); n != 1 {
		t.Errorf("the second received %d notifications after the first died; want 1", n)
	}
}

// Behind a pooler that gives a server session to one transaction at a time, a writer rings,
// and leaves no lock behind.
func TestWritersBehindAPoolerRing(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	d := newDoor(t, server)
	config, err := pgx.ParseConfig(server.PgBouncer(t, "transaction").DSN(server.DSN()))
	d.must(err)
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	writer, err := pgx.ConnectConfig(t.Context(), config)
	d.must(err)
	t.Cleanup(func() { _ = writer.Close(context.WithoutCancel(t.Context())) })
	reader := d.reader()
	d.insert(writer)
	if n := d.rings(reader); n != 0 {
		t.Errorf("%d notifications while the reader is awake; want none", n)
	}
	if !d.shut(reader) {
		t.Fatal("the writer's session has kept a lock")
	}
	d.insert(writer)
	if n := d.rings(reader); n != 1 {
		t.Errorf("%d notifications while the reader is asleep; want 1", n)
	}
}
