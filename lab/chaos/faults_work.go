//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/lab/chaos/record"
	"github.com/exactly-one/tenure/lab/chaos/script"
)

// The processors and the schedule that operators change.
const (
	viewName     = "total"
	lettersName  = "letters"
	pausedTicker = "again"
)

// insist repeats a change by an operator until the server has carried it out.
func insist(ctx context.Context, change func(context.Context) error) (err error) {
	until(ctx, injectTime, func() bool {
		once, cancel := context.WithTimeout(ctx, requestLimit)
		defer cancel()
		err = change(once)
		return err == nil
	})
	return err
}

// hideColumn makes the log unreadable.
func hideColumn(ctx context.Context, b *bed, _ *member, _ script.Step) (func(context.Context) error, string, error) {
	rename := func(from, to string) func(context.Context) error {
		return func(ctx context.Context) error {
			return b.execute(ctx, "SET lock_timeout = '1s'", fmt.Sprintf("ALTER TABLE tenure_events RENAME COLUMN %s TO %s", from, to))
		}
	}
	err := insist(ctx, rename("occurred_at", "elsewhere"))
	if err != nil {
		return nil, "", err
	}
	return func(ctx context.Context) error { return insist(ctx, rename("elsewhere", "occurred_at")) }, "", nil
}

func pauseView(ctx context.Context, b *bed, _ *member, _ script.Step) (func(context.Context) error, string, error) {
	resume := func(ctx context.Context) error {
		return insist(ctx, func(ctx context.Context) error { return b.processors.Resume(ctx, viewName, requester) })
	}
	return resume, "", insist(ctx, func(ctx context.Context) error { return b.processors.Pause(ctx, viewName, requester) })
}

func rebuildView(ctx context.Context, b *bed, _ *member, _ script.Step) (func(context.Context) error, string, error) {
	return nil, "", insist(ctx, func(ctx context.Context) error { return b.processors.Rebuild(ctx, viewName, requester) })
}

// poison lets each event become a dead letter, and replays all of them at its end.
func poison(ctx context.Context, b *bed, _ *member, _ script.Step) (func(context.Context) error, string, error) {
	set := func(statement string) func(context.Context) error {
		return func(ctx context.Context) error { return b.execute(ctx, statement) }
	}
	heal := func(ctx context.Context) error {
		if err := insist(ctx, set("DELETE FROM chaos_poison")); err != nil {
			return err
		}
		return insist(ctx, b.replayLetters)
	}
	return heal, "", insist(ctx, set("INSERT INTO chaos_poison VALUES (true) ON CONFLICT DO NOTHING"))
}

// replayLetters replays what a processor has in its dead letters.
func (b *bed) replayLetters(ctx context.Context) error {
	_, err := b.processors.Replay(ctx, lettersName, nil, requester)
	return err
}

// pauseSchedule records by the server's clock when no tick need be recorded.
func pauseSchedule(ctx context.Context, b *bed, _ *member, _ script.Step) (func(context.Context) error, string, error) {
	from, err := b.serverTime(ctx)
	if err != nil {
		return nil, "", err
	}
	resume := func(ctx context.Context) error {
		err := insist(ctx, func(ctx context.Context) error { return b.schedules.Resume(ctx, pausedTicker, requester) })
		if err != nil {
			return err
		}
		to, err := b.serverTime(ctx)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.history.Pauses = append(b.history.Pauses, record.Pause{Schedule: pausedTicker, From: from.UnixNano(), To: to.UnixNano()})
		return err
	}
	return resume, "", insist(ctx, func(ctx context.Context) error { return b.schedules.Pause(ctx, pausedTicker, requester) })
}

func (b *bed) serverTime(ctx context.Context) (at time.Time, err error) {
	err = insist(ctx, func(ctx context.Context) error {
		return b.asAdmin(ctx, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&at) })
	})
	return at, err
}

// triggerRun requests a run. If the answer is lost, there can be one more.
func triggerRun(ctx context.Context, b *bed, _ *member, _ script.Step) (func(context.Context) error, string, error) {
	return nil, "", insist(ctx, func(ctx context.Context) error {
		_, err := b.schedules.Trigger(ctx, pausedTicker, requester)
		return err
	})
}
