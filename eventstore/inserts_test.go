package eventstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/doorbell"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/processor"
)

// listen listens for inserts as a reader that is asleep. The result returns the channels of
// the notifications since its last call.
func (l *log) listen() (notifications func() []string) {
	l.Helper()
	ctx, listener := l.Context(), l.server.Conn(l.TB)
	channel := schema.Of(l.backend).Channel(processor.Topic)
	last := schema.Of(l.backend).Channel("last") // of this test alone
	for _, channel := range []string{channel, last} {
		_, err := listener.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize())
		l.must(err)
	}
	var err error
	l.reader, err = doorbell.On(ctx, listener, channel)
	l.must(err)
	if asleep, err := l.reader.Shut(ctx); !asleep || err != nil {
		l.Fatalf("the reader is asleep: %t, %v; want true", asleep, err)
	}
	return func() (channels []string) {
		l.Helper()
		l.exec(l.conn, "NOTIFY "+pgx.Identifier{last}.Sanitize())
		for {
			limited, cancel := context.WithTimeout(ctx, 20*time.Second)
			notification, err := listener.WaitForNotification(limited)
			cancel()
			l.must(err)
			if notification.Channel == last {
				return channels
			}
			channels = append(channels, notification.Channel)
		}
	}
}

func (l *log) exec(conn *pgx.Conn, sql string, args ...any) {
	l.Helper()
	_, err := conn.Exec(l.Context(), sql, args...)
	l.must(err)
}

// An insert by another program notifies like an append, with no privilege but INSERT:
// once for a statement of many rows, and once for a transaction of many statements.
func TestInsertsNotifyProcessors(t *testing.T) {
	t.Parallel()
	l := newLog(t, eventstore.Config{})
	l.must(l.Append(t.Context(), l.conn, eventstore.NewEvent{Type: "creates the table"}))
	notifications := l.listen()
	schemaName := pgx.Identifier{l.Schema}.Sanitize()
	user := l.Schema + "_inserts"
	l.exec(l.conn, "CREATE ROLE "+user+" LOGIN; GRANT USAGE ON SCHEMA "+schemaName+" TO "+user+"; GRANT INSERT ON "+l.table+" TO "+user+
		"; REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA "+schemaName+" FROM PUBLIC")
	t.Cleanup(func() {
		if _, err := l.server.Conn(t).Exec(context.WithoutCancel(t.Context()), "DROP OWNED BY "+user+"; DROP ROLE "+user); err != nil {
			t.Error(err)
		}
	})
	conn := pgtest.Conn(t, l.server.DSNFor(user, l.conn.Config().Database))
	for name, insert := range map[string]func(){
		"one row":   func() { l.exec(conn, "INSERT INTO "+l.table+" (type) VALUES ('a')") },
		"many rows": func() { l.exec(conn, "INSERT INTO "+l.table+" (type) SELECT 'a' FROM generate_series(1, 1000)") },
		"many statements": func() {
			l.must(pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
				for range 20 {
					l.exec(tx.Conn(), "INSERT INTO "+l.table+" (type) VALUES ('a')")
				}
				return l.Append(t.Context(), tx, eventstore.NewEvent{Type: "a"})
			}))
		},
		"COPY": func() {
			_, err := conn.CopyFrom(t.Context(), pgx.Identifier{l.Schema, "tenure_events"}, []string{"type"},
				pgx.CopyFromSlice(1000, func(int) ([]any, error) { return []any{"a"}, nil }))
			l.must(err)
		},
	} {
		insert()
		if got := notifications(); len(got) != 1 {
			t.Errorf("%s: %d notifications; want 1", name, len(got))
		}
	}
}

// While the only reader is awake, neither appends nor inserts of other programs notify.
func TestCommitsDoNotNotifyAReaderThatIsAwake(t *testing.T) {
	t.Parallel()
	l := newLog(t, eventstore.Config{})
	l.must(l.Append(t.Context(), l.conn, eventstore.NewEvent{Type: "creates the table"}))
	notifications := l.listen()
	if awake, err := l.reader.Open(t.Context()); !awake || err != nil {
		t.Fatalf("the reader is awake: %t, %v; want true", awake, err)
	}
	l.must(l.Append(t.Context(), l.conn, eventstore.NewEvent{Type: "a"}))
	l.exec(l.conn, "INSERT INTO "+l.table+" (type) VALUES ('a')")
	if got := notifications(); len(got) != 0 {
		t.Errorf("%d notifications; want none", len(got))
	}
}

// An append without notifications silences only itself, not other statements of its
// transaction.
func TestQuietAppendSilencesOnlyItself(t *testing.T) {
	t.Parallel()
	l := newLog(t, eventstore.Config{NoNotify: true})
	l.must(l.Append(t.Context(), l.conn, eventstore.NewEvent{Type: "creates the table"}))
	notifications := l.listen()
	l.must(pgx.BeginFunc(t.Context(), l.conn, func(tx pgx.Tx) error {
		for range 2 {
			if err := l.Append(t.Context(), tx, eventstore.NewEvent{Type: "a"}, eventstore.NewEvent{Type: "b"}); err != nil {
				return err
			}
		}
		return nil
	}))
	if got := notifications(); len(got) != 0 {
		t.Errorf("%d notifications of quiet appends; want none", len(got))
	}
	l.must(pgx.BeginFunc(t.Context(), l.conn, func(tx pgx.Tx) error {
		if err := l.Append(t.Context(), tx, eventstore.NewEvent{Type: "a"}); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), "INSERT INTO "+l.table+" (type) VALUES ('b')")
		return err
	}))
	if got := notifications(); len(got) != 1 {
		t.Errorf("%d notifications of an insert after a quiet append; want 1", len(got))
	}
}

// A table that was created without its trigger still notifies of appends. The tables can
// be removed and created again.
func TestAppendNotifiesWithoutTrigger(t *testing.T) {
	t.Parallel()
	l := newLog(t, eventstore.Config{})
	ctx := t.Context()
	l.must(l.Append(ctx, l.conn, eventstore.NewEvent{Type: "creates the table"}))
	l.exec(l.conn, "DROP TRIGGER tenure_events_inserted ON "+l.table)
	notifications := l.listen()
	l.must(l.Append(ctx, l.conn, eventstore.NewEvent{Type: "a"}))
	if got := notifications(); len(got) != 1 {
		t.Errorf("%d notifications of an append to a table of an earlier version; want 1", len(got))
	}
	l.must(l.backend.MigrateDown(ctx, "events", 0))
	var left int
	l.must(l.conn.QueryRow(ctx, "SELECT count(*) FROM pg_proc WHERE pronamespace = $1::regnamespace AND proname LIKE '%events%'", l.Schema).Scan(&left))
	if left != 0 {
		t.Errorf("%d functions of events are left after the tables were removed; want 0", left)
	}
	l.must(l.backend.Migrate(ctx, "events"))
	l.exec(l.conn, "INSERT INTO "+l.table+" (type) VALUES ('a')")
	if got := notifications(); len(got) != 1 {
		t.Errorf("%d notifications of an insert into a table that was created again; want 1", len(got))
	}
}
