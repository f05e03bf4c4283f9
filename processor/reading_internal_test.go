package processor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// Reads from a table unrelated to package eventstore, on a server without other
// transactions, which would hold the horizon.
func TestReaderReadsSelectedEvents(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"autovacuum": "off"}})
	pool := server.Pool(t)
	for name, test := range map[string]func(*testing.T, *pgxpool.Pool, string){
		"selection":              testSelection,
		"null columns":           testNullColumns,
		"tags of two dimensions": testTagsOfTwoDimensions,
		"horizon":                testHorizon,
		"start at a time":        testStartTime,
		"tail":                   testTail,
		"tails of one log":       testTailsOfOneLog,
		"tail fails":             testTailFails,
	} {
		t.Run(name, func(t *testing.T) {
			table := pgx.Identifier{"orders log of " + name}.Sanitize()
			_, err := pool.Exec(t.Context(), `
				CREATE TABLE `+table+` (
					xid xid8 NOT NULL DEFAULT pg_current_xact_id(), id bigserial, kind varchar(200), labels varchar[],
					UNIQUE (xid, id)
				)`)
			if err != nil {
				t.Fatal(err)
			}
			test(t, pool, table)
		})
	}
}

func tableLog(table string) Log {
	return LogFromQuery("orders", `
		SELECT
			xid AS transaction_id, id AS position, kind AS type, labels AS tags, jsonb_build_object('is', $1::text) AS data,
			NULL::timestamptz AS occurred_at, NULL::uuid AS correlation_id, NULL::uuid AS causation_id
		FROM `+table+`;
		`, "it's")
}

// readAllOf reads until nothing is found in a stretch that was looked at.
func readAllOf(ctx context.Context, r *reader, limit int) (all []Event, err error) {
	for at := (Cursor{}); ; {
		events, scanned, err := r.next(ctx, r.database, at, limit)
		if err != nil || scanned == at {
			return all, err
		}
		if len(events) > limit || len(events) == 0 && r.selected == nil {
			return nil, fmt.Errorf("%d events were read up to %v", len(events), scanned)
		}
		all, at = append(all, events...), scanned
	}
}

// selects is the simplest implementation of a selection.
func (s Selection) selects(e Event) bool {
	has := func(key string) bool {
		return slices.ContainsFunc(e.Tags, func(tag string) bool { return strings.HasPrefix(tag, key+"=") })
	}
	for _, key := range s.RequiredTags {
		if !has(key) {
			return false
		}
	}
	for _, tag := range s.ExactTags {
		if !slices.Contains(e.Tags, tag) {
			return false
		}
	}
	return (len(s.Types) == 0 || slices.Contains(s.Types, e.Type)) &&
		(len(s.AnyTags) == 0 || slices.ContainsFunc(s.AnyTags, has))
}

// The selected events and their order follow the model, whatever the values are and
// wherever a statement ends.
func testSelection(t *testing.T, pool *pgxpool.Pool, table string) {
	t.Helper()
	ctx := t.Context()
	texts := []string{"a", "b", "A", "", "é", "%", "_", `\`, `"`, "{", "}", ",", "NULL", "'; DROP TABLE orders; --", "$1", "a b", "\t", "🙂"}
	text := rapid.SampledFrom(texts)
	key := rapid.SampledFrom(slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return text == "" }))
	tag := rapid.Custom(func(t *rapid.T) string {
		return key.Draw(t, "key") + "=" + rapid.SampledFrom([]string{"", "1", "x=y", "'"}).Draw(t, "value")
	})
	event := rapid.Custom(func(t *rapid.T) Event {
		return Event{Type: text.Draw(t, "type"), Tags: rapid.SliceOfN(tag, 0, 4).Draw(t, "tags")}
	})
	rapid.Check(t, func(t *rapid.T) {
		written := rapid.SliceOfN(event, 0, 12).Draw(t, "events")
		s := Selection{
			Types:        rapid.SliceOfN(text, 0, 3).Draw(t, "types"),
			RequiredTags: rapid.SliceOfN(key, 0, 2).Draw(t, "required"),
			AnyTags:      rapid.SliceOfN(key, 0, 3).Draw(t, "any"),
			ExactTags:    rapid.SliceOfN(tag, 0, 2).Draw(t, "exact"),
		}
		if err := s.validate(); err != nil {
			t.Fatal(err)
		}
		batch := &pgx.Batch{}
		batch.Queue("TRUNCATE " + table)
		for _, e := range written {
			batch.Queue("INSERT INTO "+table+" (kind, labels) VALUES ($1, $2)", e.Type, e.Tags)
		}
		if err := pool.SendBatch(ctx, batch).Close(); err != nil {
			t.Fatal(err)
		}
		var want, got []string
		for _, e := range written {
			if s.selects(e) {
				want = append(want, fmt.Sprintf("%q %q", e.Type, e.Tags))
			}
		}
		for _, e := range written {
			if s.matches(&e) != s.selects(e) {
				t.Fatalf("in memory, the selection of %q %q is %v", e.Type, e.Tags, s.matches(&e))
			}
		}
		r := newReader(pool, tableLog(table), s, contents)
		r.stride = rapid.IntRange(1, 5).Draw(t, "stride")
		read, err := readAllOf(ctx, r, rapid.IntRange(1, 4).Draw(t, "limit"))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range read {
			got = append(got, fmt.Sprintf("%q %q", e.Type, e.Tags))
			if string(e.Data) != `{"is": "it's"}` {
				t.Fatalf("the data are %s", e.Data)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("selected %v, want %v", got, want)
		}
	})
}

// NULL in a user's own table is an empty value in an event.
func testNullColumns(t *testing.T, pool *pgxpool.Pool, table string) {
	t.Helper()
	for _, row := range []string{"(NULL, NULL)", "('kind', ARRAY[NULL, 'a=b'])", "('kind', '{}')"} {
		pgtest.Exec(t, pool, "INSERT INTO "+table+" (kind, labels) VALUES "+row)
	}
	events, err := readAllOf(t.Context(), newReader(pool, tableLog(table), Selection{}, contents), 10)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range events {
		got = append(got, fmt.Sprintf("%q %q %v", e.Type, e.Tags, e.OccurredAt.IsZero()))
	}
	if want := []string{`"" [] true`, `"kind" ["" "a=b"] true`, `"kind" [] true`}; !slices.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
}

// An array of more than one dimension is no list of tags.
func testTagsOfTwoDimensions(t *testing.T, pool *pgxpool.Pool, table string) {
	t.Helper()
	pgtest.Exec(t, pool, "INSERT INTO "+table+" (kind, labels) VALUES ('kind', '{{a=1},{b=2}}')")
	if _, err := readAllOf(t.Context(), newReader(pool, tableLog(table), Selection{}, contents), 10); err == nil {
		t.Error("it was read")
	}
}

// Transaction ids and positions that are in the opposite order, in a user's own table:
// no event is skipped while a transaction is open.
func testHorizon(t *testing.T, pool *pgxpool.Pool, table string) {
	t.Helper()
	ctx := t.Context()
	first, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Rollback(ctx) }() // does nothing after the commit
	if _, err := first.Exec(ctx, "SELECT pg_current_xact_id()"); err != nil {
		t.Fatal(err)
	}
	insert := func(in interface {
		Query(context.Context, string, ...any) (pgx.Rows, error)
	}, kind string) {
		t.Helper()
		rows, err := in.Query(ctx, "INSERT INTO "+table+" (kind, labels) VALUES ($1, '{a=b}')", kind)
		if err != nil {
			t.Fatal(err)
		}
		if rows.Close(); rows.Err() != nil {
			t.Fatal(rows.Err())
		}
	}
	insert(pool, "second")
	for _, s := range []Selection{{}, {AnyTags: []string{"a"}}} {
		r := newReader(pool, tableLog(table), s, contents)
		if events, scanned, err := r.next(ctx, r.database, Cursor{}, 10); err != nil || len(events) > 0 || scanned != (Cursor{}) {
			t.Errorf("with %+v, %d events were read up to %v before the first transaction has ended: %v", s, len(events), scanned, err)
		}
		if more, err := r.more(ctx, Cursor{}); err != nil || !more {
			t.Errorf("with %+v, nothing waits: %v", s, err)
		}
	}
	insert(first, "first")
	if err := first.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	for _, s := range []Selection{{}, {AnyTags: []string{"a"}}} {
		for _, limit := range []int{1, 10} {
			events, err := readAllOf(ctx, newReader(pool, tableLog(table), s, contents), limit)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range events {
				got = append(got, e.Type)
			}
			if want := []string{"first", "second"}; !slices.Equal(got, want) {
				t.Errorf("with %+v, %d at a time, read %v, want %v", s, limit, got, want)
			}
		}
	}
}
