package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/assign"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/processor"
)

// rate is how many commits a second wake a reader, beside commits that wake none.
type rate struct {
	Commits string    `json:"commits"`
	Writers int       `json:"writers"`
	Rates   []float64 `json:"rates"`
	// Beside are commits of the same statement without a notification, beside the same
	// reader, which polls without a pause, and Bare those beside no reader.
	Beside []float64 `json:"beside"`
	Bare   []float64 `json:"bare"`
	Ratio  float64   `json:"ratio"` // of the medians of Rates and Beside
}

// kind is a kind of commits.
type kind struct {
	name  string
	read  func(ctx context.Context, polls bool) (stop func() error, err error)
	write func(notify bool) func(context.Context, *pgx.Conn) error
}

// busyPoll is the poll interval of a reader that needs no notifications.
const busyPoll = 2 * time.Millisecond

func (b *bench) kinds() []kind {
	events := func(ctx context.Context, polls bool) (func() error, error) {
		if polls {
			return b.process(ctx, processor.Config{PollInterval: busyPoll, MaxPollInterval: busyPoll})
		}
		return b.process(ctx, processor.Config{})
	}
	rows := func(ctx context.Context, polls bool) (func() error, error) {
		config := b.jobs
		if polls {
			config.PollInterval = 10 * busyPoll
		}
		assigner, err := assign.New(b.member, b.pool, config)
		if err != nil {
			return nil, err
		}
		return inBackground(ctx, assigner.Run), nil
	}
	exec := func(sql string) func(bool) func(context.Context, *pgx.Conn) error {
		return func(notify bool) func(context.Context, *pgx.Conn) error {
			quiet := map[bool]string{true: "", false: "quiet"}[notify]
			return func(ctx context.Context, conn *pgx.Conn) error {
				_, err := conn.Exec(ctx, sql, quiet)
				return err
			}
		}
	}
	return []kind{
		{"eventstore.Append", events, func(notify bool) func(context.Context, *pgx.Conn) error {
			return func(ctx context.Context, conn *pgx.Conn) error { return b.append(ctx, conn, notify) }
		}},
		{"INSERT INTO tenure_events", events, exec(`INSERT INTO public.tenure_events (type) SELECT 'bench' FROM set_config('tenure.append', $1, false)`)},
		{"INSERT of a job", rows, nil},
	}
}

// append appends a numbered event.
func (b *bench) append(ctx context.Context, conn eventstore.Executor, notify bool) error {
	store := b.quiet
	if notify {
		store = b.store
	}
	number, committed := b.events.begin()
	err := store.Append(ctx, conn, eventstore.NewEvent{Type: "bench", Data: number})
	if err == nil {
		committed(time.Now())
	}
	return err
}

// insertJob inserts a job; its triggers are enabled for all writers or for none.
func insertJob(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `INSERT INTO public.jobs DEFAULT VALUES`)
	return err
}

func (b *bench) doorbell(ctx context.Context, w io.Writer) (all []rate, err error) {
	fmt.Fprintf(w, "%-26s %8s %10s %12s %10s %7s %10s\n", "commits that wake a reader", "writers", "commits/s", "no wake/s", "ratio", "bare/s", "of bare")
	for _, kind := range b.kinds() {
		for _, writers := range b.writers {
			r := rate{Commits: kind.name, Writers: writers}
			for range b.rounds {
				if err := b.round(ctx, kind, &r); err != nil {
					return all, fmt.Errorf("%s with %d writers: %w", kind.name, writers, err)
				}
			}
			r.Ratio = median(r.Rates) / median(r.Beside)
			fmt.Fprintf(w, "%-26s %8d %10.0f %12.0f %10.2f %7.0f %10.2f\n", r.Commits, writers, median(r.Rates), median(r.Beside), r.Ratio, median(r.Bare), median(r.Rates)/median(r.Bare))
			all = append(all, r)
		}
	}
	fmt.Fprintln(w)
	return all, nil
}

// round measures all three, in an order that changes from round to round.
func (b *bench) round(ctx context.Context, kind kind, r *rate) error {
	type turn struct {
		reads, notify bool
		rates         *[]float64
	}
	turns := []turn{{true, true, &r.Rates}, {true, false, &r.Beside}, {false, false, &r.Bare}}
	first := len(r.Rates) % len(turns)
	for _, turn := range append(turns[first:], turns[:first]...) {
		value, err := b.turn(ctx, kind, r.Writers, turn.reads, turn.notify)
		if err != nil {
			return err
		}
		*turn.rates = append(*turn.rates, value)
	}
	return nil
}

func (b *bench) turn(ctx context.Context, kind kind, writers int, reads, notify bool) (value float64, err error) {
	if _, err := b.pool.Exec(ctx, `TRUNCATE public.tenure_events, public.jobs; CHECKPOINT`); err != nil {
		return 0, err
	}
	commit := insertJob
	if kind.write != nil {
		commit = kind.write(notify)
	} else {
		enable := map[bool]string{true: "ENABLE", false: "DISABLE"}[notify]
		if _, err := b.pool.Exec(ctx, `ALTER TABLE public.jobs `+enable+` TRIGGER USER`); err != nil {
			return 0, err
		}
	}
	b.events = newLedger()
	if reads {
		stop, err := kind.read(ctx, !notify)
		if err != nil {
			return 0, err
		}
		defer func() {
			if failure := stop(); err == nil {
				err = failure
			}
		}()
	}
	return b.write(ctx, writers, commit)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
