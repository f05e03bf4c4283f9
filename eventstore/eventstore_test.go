package eventstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/doorbell"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/postgres"
)

// log is a store in its own installation.
type log struct {
	*postgrestest.Installation
	*eventstore.Store
	server  *pgtest.Server
	backend *postgres.Backend
	conn    *pgx.Conn
	table   string
	reader  doorbell.Line // of listen
}

func newLog(t *testing.T, config eventstore.Config) *log {
	t.Helper()
	i := postgrestest.New(t, "events")
	return &log{
		Installation: i, Store: eventstore.New(i.Backend, config), server: i.Server, backend: i.Backend, conn: i.Server.Conn(t),
		table: pgx.Identifier{i.Schema, "tenure_events"}.Sanitize(),
	}
}

// types returns the types of the events in the order of the log.
func (l *log) types() []string {
	l.Helper()
	rows, err := l.conn.Query(l.Context(), "SELECT type FROM "+l.table+" ORDER BY transaction_id, position")
	if err != nil {
		l.Fatal(err)
	}
	types, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		l.Fatal(err)
	}
	return types
}

func (l *log) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func TestAppendJoinsTheCallersTransaction(t *testing.T) {
	t.Parallel()
	l := newLog(t, eventstore.Config{})
	ctx := t.Context()
	tx, err := l.conn.Begin(ctx)
	l.must(err)
	l.must(l.Append(ctx, tx, eventstore.NewEvent{Type: "lost"}))
	l.must(tx.Rollback(ctx))
	tx, err = l.conn.Begin(ctx)
	l.must(err)
	l.must(l.Append(ctx, tx, eventstore.NewEvent{Type: "one"}, eventstore.NewEvent{Type: "two"}))
	l.must(l.Append(ctx, tx))
	l.must(l.Append(ctx, tx, eventstore.NewEvent{Type: "three"}))
	l.must(tx.Commit(ctx))
	var many []eventstore.NewEvent
	want := []string{"one", "two", "three"}
	for i := range 1000 {
		want = append(want, fmt.Sprint(i))
		many = append(many, eventstore.NewEvent{Type: fmt.Sprint(i)})
	}
	l.must(l.Append(ctx, l.conn, many...))
	if got := l.types(); !slices.Equal(got, want) {
		t.Errorf("the log has %v", got)
	}
}

func TestAppendWritesAllColumns(t *testing.T) {
	t.Parallel()
	l := newLog(t, eventstore.Config{})
	ctx := t.Context()
	occurred := time.Date(2026, 3, 8, 2, 30, 0, 123456000, time.UTC)
	full := eventstore.NewEvent{
		Type: "order placed ✓", Tags: []string{"order=1", "note=a=b, \"c\" {d}", "empty="}, Data: map[string]any{"total": 12.5},
		OccurredAt: occurred, Correlation: uuid.New(), Causation: uuid.New(),
	}
	before := time.Now().Add(-time.Minute)
	l.must(l.Append(ctx, l.conn, full, eventstore.NewEvent{Type: "bare"}, eventstore.NewEvent{Type: "raw", Data: json.RawMessage(`[1, 2]`)}))
	rows, err := l.conn.Query(ctx, "SELECT type, tags, data::text, occurred_at, correlation_id, causation_id FROM "+l.table+" ORDER BY position")
	l.must(err)
	type row struct {
		Type                   string
		Tags                   []string
		Data                   string
		OccurredAt             time.Time
		Correlation, Causation *uuid.UUID
	}
	got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	l.must(err)
	first := got[0]
	if first.Type != full.Type || !slices.Equal(first.Tags, full.Tags) || first.Data != `{"total": 12.5}` ||
		!first.OccurredAt.Equal(occurred) || *first.Correlation != full.Correlation || *first.Causation != full.Causation {
		t.Errorf("the first event became %+v", first)
	}
	bare := got[1]
	if len(bare.Tags) != 0 || bare.Data != "null" || bare.OccurredAt.Before(before) || bare.Correlation != nil || bare.Causation != nil {
		t.Errorf("the bare event became %+v", bare)
	}
	if got[2].Data != "[1, 2]" {
		t.Errorf("raw data became %s", got[2].Data)
	}
}

// Append checks all events before it sends any, and the error contains the number of the
// invalid one.
func TestAppendRejectsInvalidEvents(t *testing.T) {
	t.Parallel()
	l := newLog(t, eventstore.Config{})
	fitting := strings.Repeat("x", 1<<20-2) // its quotes
	for name, event := range map[string]eventstore.NewEvent{
		"no type":                   {},
		"a long type":               {Type: strings.Repeat("x", 255+1)},
		"control characters":        {Type: "a\x00b"},
		"a tag without =":           {Type: "a", Tags: []string{"order=1", "order"}},
		"a tag without a key":       {Type: "a", Tags: []string{"=1"}},
		"a tag with a zero":         {Type: "a", Tags: []string{"order=\x00"}},
		"a tag that is no text":     {Type: "a", Tags: []string{"order=\xff"}},
		"data over the limit":       {Type: "a", Data: fitting + "x"},
		"data that are none":        {Type: "a", Data: math.Inf(1)},
		"a function":                {Type: "a", Data: func() {}},
		"raw data that are no JSON": {Type: "a", Data: json.RawMessage(`{`)},
	} {
		err := l.Append(t.Context(), l.conn, eventstore.NewEvent{Type: "good"}, event)
		if !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), "event 1") {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
	}
	l.must(l.Append(t.Context(), l.conn, eventstore.NewEvent{Type: "large", Data: fitting}))
	if got := l.types(); !slices.Equal(got, []string{"large"}) {
		t.Errorf("the log has %v", got)
	}
	// PostgreSQL rejects JSON that it cannot store.
	if err := l.Append(t.Context(), l.conn, eventstore.NewEvent{Type: "zero", Data: "\x00"}); err == nil {
		t.Error("Append accepts NUL in a text")
	}
}

// Each commit sends one notification, or none with NoNotify.
func TestAppendNotifiesProcessors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config   eventstore.Config
		notified bool
	}{
		"notified": {eventstore.Config{}, true},
		"quiet":    {eventstore.Config{NoNotify: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLog(t, test.config)
			ctx := t.Context()
			notifications := l.listen()
			tx, err := l.conn.Begin(ctx)
			l.must(err)
			l.must(l.Append(ctx, tx, eventstore.NewEvent{Type: "one"}, eventstore.NewEvent{Type: "two"}))
			l.must(l.Append(ctx, tx, eventstore.NewEvent{Type: "three"}))
			l.must(tx.Rollback(ctx))
			if got := notifications(); len(got) != 0 {
				t.Errorf("got the notification %v of a rolled-back append", got)
			}
			tx, err = l.conn.Begin(ctx)
			l.must(err)
			l.must(l.Append(ctx, tx, eventstore.NewEvent{Type: "one"}, eventstore.NewEvent{Type: "two"}))
			l.must(l.Append(ctx, tx, eventstore.NewEvent{Type: "three"}))
			l.must(tx.Commit(ctx))
			if got := notifications(); len(got) == 1 != test.notified || len(got) > 1 {
				t.Errorf("got the notifications %v; want one: %t", got, test.notified)
			}
		})
	}
}

func TestWorkGrantsSuffice(t *testing.T) {
	t.Parallel()
	l := newLog(t, eventstore.Config{})
	ctx := t.Context()
	namespace, _, _ := strings.Cut(strings.Trim(l.table, `"`), `"`)
	for suffix, grants := range map[string]func(user string) string{
		"work": func(user string) string {
			grants, err := l.backend.WorkGrants(user, "events")
			l.must(err)
			return grants
		},
		"insert": func(user string) string {
			return "GRANT USAGE ON SCHEMA " + pgx.Identifier{namespace}.Sanitize() + " TO " + user + "; GRANT INSERT ON " + l.table + " TO " + user
		},
	} {
		user := namespace + "_" + suffix
		_, err := l.conn.Exec(ctx, "CREATE ROLE "+user+" LOGIN; "+grants(user))
		l.must(err)
		t.Cleanup(func() {
			admin := l.server.Conn(t)
			_, err := admin.Exec(context.WithoutCancel(ctx), "DROP OWNED BY "+user+"; DROP ROLE "+user)
			if err != nil {
				t.Error(err)
			}
		})
		conn := pgtest.Conn(t, l.server.DSNFor(user, l.conn.Config().Database))
		if err := l.Append(ctx, conn, eventstore.NewEvent{Type: suffix}); err != nil {
			t.Errorf("%s: appending an event: %v", suffix, err)
		}
		_, err = conn.Exec(ctx, "UPDATE "+l.table+" SET type = 'other'")
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != "42501" {
			t.Errorf("%s: changing an event: %v", suffix, err)
		}
	}
	if got := l.types(); len(got) != 2 {
		t.Errorf("the log has %v", got)
	}
}

// The first event creates the table, also in a transaction that began before it and
// reads versions. A program that must not create tables names the command.
func TestFirstAppendCreatesTheTable(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	config := postgres.Config{Schema: server.Schema(t), ManualMigrations: true}
	open := func() *postgres.Backend {
		backend, err := postgres.New(server.DSN(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(backend.Close)
		return backend
	}
	ctx := t.Context()
	conn := server.Conn(t)
	manual := open()
	if err := manual.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	err := eventstore.New(manual, eventstore.Config{}).Append(ctx, conn, eventstore.NewEvent{Type: "a"})
	if !errors.Is(err, dberr.ErrSchema) || !strings.Contains(err.Error(), "tenure migrate up --feature events") {
		t.Errorf("%v; want ErrSchema and the command", err)
	}
	config.ManualMigrations = false
	backend := open()
	store := eventstore.New(backend, eventstore.Config{})
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, pgtest.SQL(backend, "SELECT FROM {migrations}")); err != nil {
			return err
		}
		for _, kind := range []string{"a", "b"} {
			if err := store.Append(ctx, tx, eventstore.NewEvent{Type: kind}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var count int
	if err := conn.QueryRow(ctx, pgtest.SQL(backend, "SELECT count(*) FROM {events}")).Scan(&count); err != nil || count != 2 {
		t.Errorf("%d events, %v; want 2", count, err)
	}

	// An operator removes the table.
	for _, sql := range []string{"DROP TABLE {events}", "DELETE FROM {migrations} WHERE feature = 'events'"} {
		if _, err := conn.Exec(ctx, pgtest.SQL(backend, sql)); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Append(ctx, conn, eventstore.NewEvent{Type: "c"}); err == nil {
		t.Error("an event was appended to a table that is not there")
	}
	if err := store.Append(ctx, conn, eventstore.NewEvent{Type: "c"}); err != nil {
		t.Errorf("the next append did not create the table: %v", err)
	}
}
