//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/lab/chaos/check"
	"github.com/exactly-one/tenure/lab/chaos/record"
	"github.com/exactly-one/tenure/outbox"
	"github.com/exactly-one/tenure/outbox/webhook"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retry"
	"github.com/exactly-one/tenure/view"
)

// payment is the data of an event.
type payment struct {
	ID     string
	Amount int64
}

// policies are the schedules of a run.
var policies = map[string]cron.Policy{"once": cron.AtMostOnce, "again": cron.AtLeastOnce}

// scheduler runs the schedules: each tick leaves a report when it starts, and a row.
func (n *node) scheduler() (*cron.Scheduler, error) {
	scheduler, err := cron.New(n.tenure, n.pool, cron.Config{PollInterval: time.Second})
	if err != nil {
		return nil, err
	}
	for name, policy := range policies {
		err := scheduler.Add(cron.Schedule{
			Name: name, Expression: fmt.Sprint("@every ", check.TickInterval), Policy: policy,
			CatchUp: cron.CatchUpAll, Overlap: cron.OverlapQueue, Job: runJob,
		})
		if err != nil {
			return nil, err
		}
	}
	return scheduler, nil
}

// longestJob is long enough that leaders die during jobs.
const longestJob = 600 * time.Millisecond

func runJob(ctx context.Context, run cron.Run) error {
	send(started, message{Schedule: run.Schedule, Run: run.ID, Attempt: run.Attempt, To: record.Now()})
	lasts := time.Duration(rand.Int64N(int64(longestJob))) //nolint:gosec // nothing depends on it
	select {
	case <-time.After(lasts):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return run.InTx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO chaos_ticks (run, attempt) VALUES ($1, $2)", run.ID, run.Attempt)
		return err
	})
}

var processing = processor.Config{
	PollInterval: 500 * time.Millisecond, MaxPollInterval: time.Second, HandleTimeout: 5 * time.Second,
	Retry: retry.FixedInterval{Interval: 500 * time.Millisecond},
}

// views adds the amounts of all events. Nothing but the cursor keeps an event from
// being applied twice.
func (n *node) views() (*processor.Group, error) {
	config, err := view.New(view.Config{
		Name: viewName, Log: n.store.Log(), Processing: processing,
		Tables: []pgx.Identifier{{"chaos_applied"}},
		Reset: func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "UPDATE chaos_total SET amount = 0")
			return err
		},
		Project: func(ctx context.Context, tx pgx.Tx, event processor.Event) error {
			var p payment
			if err := json.Unmarshal(event.Data, &p); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `
				WITH applied AS (INSERT INTO chaos_applied (id) VALUES ($1))
				UPDATE chaos_total SET amount = amount + $2`, p.ID, p.Amount)
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	group, err := processor.NewGroup(n.tenure, view.Role(), n.pool, processor.GroupConfig{})
	if err != nil {
		return nil, err
	}
	if err := group.Add(config); err != nil {
		return nil, err
	}
	letters := processing
	letters.Name, letters.Log, letters.Handle, letters.Poison = lettersName, n.store.Log(), handleLetters, processor.PoisonDeadLetter
	err = group.Add(letters)
	return group, err
}

// handleLetters fails for good while the poison is there.
func handleLetters(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
	var poisoned bool
	if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM chaos_poison)").Scan(&poisoned); err != nil {
		return err
	}
	if poisoned {
		return fmt.Errorf("%w: the poison is there", processor.ErrPoison)
	}
	ids := make([]string, len(batch))
	for i, event := range batch {
		var p payment
		if err := json.Unmarshal(event.Data, &p); err != nil {
			return err
		}
		ids[i] = p.ID
	}
	_, err := tx.Exec(ctx, "INSERT INTO chaos_letters (id) SELECT unnest($1::text[])", ids)
	return err
}

// outbox sends all events to the receiver.
func (n *node) outbox() (*processor.Group, error) {
	publisher, err := webhook.New(webhook.Config{Name: "receiver", URL: n.receiver, Source: "/chaos", Timeout: publishTimeout})
	if err != nil {
		return nil, err
	}
	configs, err := outbox.Processors(outbox.Topic{
		Name: "payments", Log: n.store.Log(), Publishers: []outbox.Publisher{publisher}, Processing: processing,
	})
	if err != nil {
		return nil, err
	}
	group, err := processor.NewGroup(n.tenure, outbox.Role(), n.pool, processor.GroupConfig{})
	if err != nil {
		return nil, err
	}
	for _, config := range configs {
		if err := group.Add(config); err != nil {
			return nil, err
		}
	}
	return group, nil
}

// appendEvents appends events until nothing more may be written. Every node does.
func (n *node) appendEvents(ctx context.Context) {
	pace := time.NewTicker(appendInterval)
	defer pace.Stop()
	for i := 1; ; i++ {
		select {
		case <-pace.C:
		case <-ctx.Done():
			return
		case <-n.quiet:
			return
		}
		p := payment{ID: fmt.Sprintf("%s-%d", n.name, i), Amount: rand.Int64N(1000)} //nolint:gosec // nothing depends on it
		once, cancel := context.WithTimeout(ctx, appendLimit)
		err := n.store.Append(once, n.pool, eventstore.NewEvent{Type: "paid", Tags: []string{"payer=" + n.name}, Data: p})
		cancel()
		if err != nil {
			send(unknown, message{ID: p.ID})
			continue
		}
		send(appended, message{ID: p.ID, To: record.Now()})
	}
}
