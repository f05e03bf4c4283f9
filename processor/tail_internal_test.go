package processor

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// testTail lets several processors read through one tail while rows are appended: each
// receives exactly what it selects, in order, whatever the others read.
func testTail(t *testing.T, pool *pgxpool.Pool, table string) {
	t.Helper()
	ctx := t.Context()
	kinds := []string{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		if _, err := pool.Exec(ctx, "TRUNCATE "+table); err != nil {
			t.Fatal(err)
		}
		configs := make([]Config, rapid.IntRange(1, 4).Draw(t, "processors"))
		for i := range configs {
			configs[i] = Config{
				Log: tableLog(table), BatchSize: 1 + i,
				Selection: Selection{Types: rapid.SliceOfNDistinct(rapid.SampledFrom(kinds), 0, 2, rapid.ID).Draw(t, "types")},
			}
		}
		shared := newTails(pool, configs, newWake(len(configs)).loops, time.Minute, func(bool) {})
		shared[0].limit = rapid.IntRange(1, 5).Draw(t, "rows of a look")
		cursors, got := make([]Cursor, len(configs)), make([][]string, len(configs))
		var written []string
		read := func(i int) {
			began := time.Now()
			r, err := shared[i].next(ctx, cursors[i], configs[i].BatchSize, configs[i], since{began, rapid.Bool().Draw(t, "notified")})
			if err == nil && !r.fits {
				alone := newReader(pool, configs[i].Log, configs[i].Selection, contents)
				r.events, r.scanned, err = alone.next(ctx, pool, cursors[i], configs[i].BatchSize)
				if r.scanned == cursors[i] {
					shared[i].join(cursors[i], began)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range r.events {
				got[i] = append(got[i], e.Type)
				if string(e.Data) != `{"is": "it's"}` || e.Tags[0] != "a=b" {
					t.Fatalf("was given %q and %q, which another processor changed", e.Data, e.Tags)
				}
				e.Data[0], e.Tags[0] = 'x', "x=y" // a handler may change what it was given
			}
			cursors[i] = r.scanned
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "append") {
				kind := rapid.SampledFrom(kinds).Draw(t, "kind")
				if _, err := pool.Exec(ctx, "INSERT INTO "+table+" (kind, labels) VALUES ($1, '{a=b}')", kind); err != nil {
					t.Fatal(err)
				}
				written = append(written, kind)
				continue
			}
			read(rapid.IntRange(0, len(configs)-1).Draw(t, "processor"))
		}
		for range 3 * (len(written) + 1) {
			for i := range configs {
				read(i)
			}
		}
		for i, c := range configs {
			var want []string
			for _, kind := range written {
				if c.Selection.matches(&Event{Type: kind}) {
					want = append(want, kind)
				}
			}
			if !slices.Equal(got[i], want) {
				t.Fatalf("the processor of %v was given %v of %v", c.Selection.Types, got[i], written)
			}
		}
	})
}

// testTailsOfOneLog reads at the same moment: one look serves all.
func testTailsOfOneLog(t *testing.T, pool *pgxpool.Pool, table string) {
	t.Helper()
	ctx := t.Context()
	configs := make([]Config, 8)
	for i := range configs {
		configs[i] = Config{Log: tableLog(table), BatchSize: 100}
	}
	var found atomic.Int64
	shared := newTails(pool, configs, newWake(len(configs)).loops, time.Minute, func(some bool) {
		if some {
			found.Add(1)
		}
	})[0]
	shared.join(Cursor{}, time.Now())
	for round := range 20 {
		if _, err := pool.Exec(ctx, "INSERT INTO "+table+" (kind, labels) VALUES ($1, '{}')", fmt.Sprint(round)); err != nil {
			t.Fatal(err)
		}
		seen := since{time.Now(), true}
		shared.mu.Lock()
		after := shared.end
		shared.mu.Unlock()
		var readers sync.WaitGroup
		for _, c := range configs {
			readers.Go(func() {
				r, err := shared.next(ctx, after, 100, c, seen)
				if err != nil || !r.fits || len(r.events) != 1 || r.events[0].Type != fmt.Sprint(round) {
					t.Errorf("round %d: read %+v: %v", round, r, err)
				}
			})
		}
		readers.Wait()
		if n := found.Load(); n != int64(round)+1 {
			t.Fatalf("round %d: %d looks reported that they found events; want one of each round", round, n)
		}
	}
}

// A tail that cannot read forgets what it knows, so that each processor reads for itself.
func testTailFails(t *testing.T, pool *pgxpool.Pool, table string) {
	t.Helper()
	configs := []Config{{Log: tableLog(table), BatchSize: 1}, {Log: tableLog(table), BatchSize: 1}}
	shared := newTails(pool, configs, newWake(2).loops, time.Minute, func(bool) {})[0]
	shared.join(Cursor{}, time.Now())
	// Set by hand: another program changes the log.
	pgtest.Exec(t, pool, "ALTER TABLE "+table+" RENAME COLUMN labels TO elsewhere")
	r, err := shared.next(t.Context(), Cursor{}, 1, configs[0], since{time.Now(), true})
	if err != nil || r.fits || shared.covers(Cursor{}) {
		t.Errorf("read %+v, %v; want that the tail has nothing", r, err)
	}
}
