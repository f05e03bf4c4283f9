package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/processor"
)

// written is what one piece of work leaves on the server.
type written struct {
	What  string  `json:"what"`
	WAL   float64 `json:"wal_bytes"`
	Table string  `json:"table"`
	Rows  float64 `json:"table_bytes"` // by how much the table grows, with its indexes
}

// writes measures what a term, a run of a schedule and an event write, without the first
// change of each page after a checkpoint.
func (b *bench) writes(ctx context.Context, w io.Writer) (all []written, err error) {
	const count = 1000
	fmt.Fprintf(w, "%-28s %10s %12s  %s\n", "written by each", "WAL bytes", "table bytes", "table")
	for _, work := range []struct {
		what, table string
		do          func(ctx context.Context, count int) error
	}{
		{"term", "tenure_history", b.terms},
		{"run of a schedule", "tenure_runs", b.runs},
		{"event, appended and handled", "tenure_events", b.handled},
	} {
		if err := work.do(ctx, count/10); err != nil { // tables and plans are ready then
			return all, fmt.Errorf("%s: %w", work.what, err)
		}
		walBefore, sizeBefore, err := b.position(ctx, work.table)
		if err != nil {
			return all, err
		}
		if err := work.do(ctx, count); err != nil {
			return all, fmt.Errorf("%s: %w", work.what, err)
		}
		walAfter, sizeAfter, err := b.position(ctx, work.table)
		if err != nil {
			return all, err
		}
		found := written{work.what, (walAfter - walBefore) / count, work.table, (sizeAfter - sizeBefore) / count}
		fmt.Fprintf(w, "%-28s %10.0f %12.0f  %s\n", found.What, found.WAL, found.Rows, found.Table)
		all = append(all, found)
	}
	return all, nil
}

// position returns where the log ends, and the size of a table with its indexes.
func (b *bench) position(ctx context.Context, table string) (wal, size float64, err error) {
	err = b.pool.QueryRow(ctx, `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8, pg_total_relation_size($1::text::regclass)::float8`, table).Scan(&wal, &size)
	return wal, size, err
}

// terms begins and ends terms of one role.
func (b *bench) terms(ctx context.Context, count int) error {
	b.role++
	election, err := b.member.Node().Election(tenure.NamedRole(fmt.Sprint("written ", b.role)))
	if err != nil {
		return err
	}
	for range count {
		if _, err := election.TryAcquire(ctx); err != nil {
			return err
		}
		if err := election.Shutdown(ctx); err != nil {
			return err
		}
	}
	return nil
}

// runs runs ticks of one schedule that were missed.
func (b *bench) runs(ctx context.Context, count int) error {
	b.role++
	name, ran := fmt.Sprint("written ", b.role), make(chan struct{}, count)
	scheduler, err := cron.New(b.member.Node(), b.pool, cron.Config{Role: tenure.NamedRole(name), Grace: 1_000_000 * time.Hour})
	if err != nil {
		return err
	}
	if err := scheduler.Add(cron.Schedule{
		Name: name, Expression: "@every 1h", Overlap: cron.OverlapQueue, CatchUpLimit: count,
		Job: func(context.Context, cron.Run) error { ran <- struct{}{}; return nil },
	}); err != nil {
		return err
	}
	if err := b.backend.Migrate(ctx, "schedules"); err != nil {
		return err
	}
	if _, err := b.pool.Exec(ctx, `
		INSERT INTO tenure_schedules (name, role, expression, timezone, handled_until)
		VALUES ($1, $1, '@every 1h', 'UTC', date_trunc('hour', clock_timestamp()) - $2 * interval '1 hour')`, name, count); err != nil {
		return err
	}
	stop := inBackground(ctx, scheduler.Run)
	for range count {
		select {
		case <-ran:
		case <-ctx.Done():
		}
	}
	return stop() // all ends are recorded
}

// handled appends events one by one, each of which a processor handles.
func (b *bench) handled(ctx context.Context, count int) error {
	stop, err := b.process(ctx, processor.Config{})
	if err != nil {
		return err
	}
	for range count {
		if err := b.append(ctx, b.pool, true); err != nil {
			return err
		}
	}
	if err := b.caughtUp(ctx); err != nil {
		return err
	}
	return stop()
}
