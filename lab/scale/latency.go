package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/processor"
)

// latency is the time from a commit to the call of the handler.
type latency struct {
	Load string   `json:"load"`
	Is   quantity `json:"processor"`
	// Bare is a reader without Tenure that looks without a pause and stores its cursor
	// with each batch: the least that a handler of ordered events does.
	Bare quantity `json:"bare"`
}

// quantity is what was measured, in milliseconds.
type quantity struct {
	Events int     `json:"events"`
	P50    float64 `json:"p50_ms"`
	P99    float64 `json:"p99_ms"`
	Max    float64 `json:"max_ms"`
}

// loads are what the readers are measured under.
var loads = []struct {
	name    string
	writers int
	pause   time.Duration // the mean between the commits of a writer
	longest time.Duration // of other transactions
}{
	{"1 writer, 10 a second", 1, 100 * time.Millisecond, 0},
	{"1 writer, 100 a second", 1, 10 * time.Millisecond, 0},
	{"8 writers, 800 a second", 8, 10 * time.Millisecond, 0},
	{"32 writers without a pause", 32, 0, 0},
	{"1 writer, 20 a second, transactions up to 2 s", 1, 50 * time.Millisecond, 2 * time.Second},
	{"8 writers, 400 a second, transactions up to 2 s", 8, 20 * time.Millisecond, 2 * time.Second},
}

func (b *bench) latencies(ctx context.Context, w io.Writer) (all []latency, err error) {
	fmt.Fprintf(w, "%-48s %8s %8s %8s %8s %9s %9s %9s\n", "from commit to handler, in ms", "events/s", "p50", "p99", "max", "bare p50", "bare p99", "bare max")
	for _, load := range loads {
		l := latency{Load: load.name}
		for _, turn := range []struct {
			read func(context.Context) (func() error, error)
			into *quantity
		}{
			{func(ctx context.Context) (func() error, error) { return b.process(ctx, processor.Config{}) }, &l.Is},
			{b.pollBare, &l.Bare},
		} {
			if *turn.into, err = b.latency(ctx, turn.read, load.writers, load.pause, load.longest); err != nil {
				return all, fmt.Errorf("%s: %w", load.name, err)
			}
		}
		persecond := float64(l.Is.Events) / (float64(b.rounds) * b.length.Seconds())
		fmt.Fprintf(w, "%-48s %8.0f %8.1f %8.1f %8.1f %9.1f %9.1f %9.1f\n", l.Load, persecond, l.Is.P50, l.Is.P99, l.Is.Max, l.Bare.P50, l.Bare.P99, l.Bare.Max)
		all = append(all, l)
	}
	return all, nil
}

func (b *bench) latency(ctx context.Context, read func(context.Context) (func() error, error), writers int, mean, longest time.Duration) (q quantity, err error) {
	if _, err := b.pool.Exec(ctx, `TRUNCATE public.tenure_events; CHECKPOINT`); err != nil {
		return q, err
	}
	stop, err := read(ctx)
	if err != nil {
		return q, err
	}
	defer func() {
		if failure := stop(); err == nil {
			err = failure
		}
	}()
	b.events.mu.Lock()
	since := len(b.events.entries)
	b.events.mu.Unlock()
	var (
		open    []interval
		holding sync.WaitGroup
	)
	hold, release := context.WithCancel(ctx)
	defer release()
	if longest > 0 {
		holding.Go(func() { open = b.hold(hold, longest) }) // exits when hold ends
	}
	rounds := *b
	rounds.length = time.Duration(b.rounds) * b.length
	_, err = rounds.write(ctx, writers, func(ctx context.Context, conn *pgx.Conn) error {
		if mean > 0 {
			pause(ctx, rand.N(2*mean))
		}
		return b.append(ctx, conn, true)
	})
	release()
	holding.Wait()
	if err != nil {
		return q, err
	}
	if err := b.caughtUp(ctx); err != nil {
		return q, err
	}
	delays := b.events.delays(since, open)
	at := func(percent int) float64 {
		return float64(delays[min(len(delays)*percent/100, len(delays)-1)].Microseconds()) / 1000
	}
	return quantity{len(delays), at(50), at(99), at(100)}, nil
}

// pollBare runs the bare reader until stop is called.
func (b *bench) pollBare(ctx context.Context) (stop func() error, err error) {
	b.events = newLedger()
	if _, err := b.pool.Exec(ctx, `
		CREATE TABLE IF NOT EXISTS public.bare (transaction_id xid8, position bigint);
		TRUNCATE public.bare;
		INSERT INTO public.bare VALUES ('0', 0)`); err != nil {
		return nil, err
	}
	stop = inBackground(ctx, func(ctx context.Context) error {
		for ctx.Err() == nil {
			if err := pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error { return b.readBare(ctx, tx) }); err != nil && ctx.Err() == nil {
				return err
			}
		}
		return nil
	})
	return stop, b.caughtUp(ctx)
}

func (b *bench) readBare(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `
		SELECT e.transaction_id::text, e.position, e.data
		FROM public.bare, public.tenure_events e
		WHERE (e.transaction_id, e.position) > (bare.transaction_id, bare.position) AND e.transaction_id < pg_snapshot_xmin(pg_current_snapshot())
		ORDER BY e.transaction_id, e.position
		LIMIT 100`)
	if err != nil {
		return err
	}
	var transaction string
	batch, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e processor.Event, err error) {
		return e, row.Scan(&transaction, &e.Position, &e.Data)
	})
	if err != nil || len(batch) == 0 {
		return err
	}
	if err := b.events.handle(ctx, tx, batch); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE public.bare SET transaction_id = $1::text::xid8, position = $2`, transaction, batch[len(batch)-1].Position)
	return err
}

// hold keeps transactions open that have an id and write nothing, one after another, and
// returns when each one was open.
func (b *bench) hold(ctx context.Context, longest time.Duration) (open []interval) {
	for ctx.Err() == nil {
		began := time.Now()
		_ = pgx.BeginFunc(context.WithoutCancel(ctx), b.pool, func(tx pgx.Tx) error { // it changes nothing
			if _, err := tx.Exec(context.WithoutCancel(ctx), `SELECT pg_current_xact_id()`); err != nil {
				return err
			}
			pause(ctx, rand.N(longest))
			return nil
		})
		open = append(open, interval{began, time.Now()})
		pause(ctx, rand.N(longest/4))
	}
	return open
}
