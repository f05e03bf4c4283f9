package processor

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"
)

// The event at which a processor starts follows the model, whatever the order of
// the times is and wherever a statement ends.
func testStartTime(t *testing.T, pool *pgxpool.Pool, table string) {
	t.Helper()
	ctx := t.Context()
	if _, err := pool.Exec(ctx, "ALTER TABLE "+table+" ADD at timestamptz"); err != nil {
		t.Fatal(err)
	}
	log := LogFromQuery("orders", `
		SELECT
			xid AS transaction_id, id AS position, kind AS type, labels AS tags, 'null'::jsonb AS data,
			at AS occurred_at, NULL::uuid AS correlation_id, NULL::uuid AS causation_id
		FROM `+table)
	minute := func(n int) time.Time { return time.Date(2026, 1, 1, 0, n, 0, 0, time.UTC) }
	rapid.Check(t, func(t *rapid.T) {
		minutes := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 8).Draw(t, "minutes")
		from := rapid.IntRange(0, 6).Draw(t, "from")
		if _, err := pool.Exec(ctx, "TRUNCATE "+table); err != nil {
			t.Fatal(err)
		}
		want := len(minutes)
		for i, n := range minutes {
			if _, err := pool.Exec(ctx, "INSERT INTO "+table+" (kind, labels, at) VALUES ('', '{}', $1)", minute(n)); err != nil {
				t.Fatal(err)
			}
			if n >= from && i < want {
				want = i
			}
		}
		r := newReader(pool, log, Selection{}, contents)
		r.stride = rapid.IntRange(1, 4).Draw(t, "stride")
		at, err := r.searchTime(ctx, minute(from), &Cursor{})
		if err != nil {
			t.Fatal(err)
		}
		if left := countAfter(ctx, t, r, at); left != len(minutes)-want {
			t.Fatalf("%d events are after the start; want %d", left, len(minutes)-want)
		}
		last, err := r.lastFinal(ctx)
		if left := countAfter(ctx, t, r, last); err != nil || left > 0 || last == (Cursor{}) && len(minutes) > 0 {
			t.Fatalf("%d events are after the last one at %v: %v", left, last, err)
		}
	})
}

func countAfter(ctx context.Context, t interface{ Fatal(args ...any) }, r *reader, after Cursor) int {
	events, _, err := r.next(ctx, r.database, after, 1000)
	if err != nil {
		t.Fatal(fmt.Errorf("read after %v: %w", after, err))
	}
	return len(events)
}
