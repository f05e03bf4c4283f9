//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/lab/chaos/check"
	"github.com/exactly-one/tenure/lab/chaos/record"
	"github.com/exactly-one/tenure/lab/chaos/script"
	"github.com/exactly-one/tenure/outbox"
	"github.com/exactly-one/tenure/view"
)

const (
	// settleLimit bounds how long the nodes need to lead all roles before the script
	// begins and after it has ended. The checker judges vacancies by the documented
	// bounds.
	settleLimit = 2 * time.Minute
	// catchUpLimit bounds how long nothing of what is left may be finished after the end.
	// How long all of it takes depends on the machine and on the length of the run: a
	// rebuild by the last fault applies all events again.
	catchUpLimit = 3 * time.Minute
)

// run starts the nodes, carries out a script, and returns what was recorded. An
// error means that nothing can be said of the nodes.
func (b *bed) run(ctx context.Context, steps []script.Step) (*record.History, error) {
	h := &b.history
	for i := range b.roles {
		h.Roles = append(h.Roles, roleName(i+1))
	}
	h.Roles = append(h.Roles, "scheduler", view.Role().Name(), outbox.Role().Name())
	h.Schedules = map[string]string{}
	for name, policy := range policies {
		h.Schedules[name] = string(policy)
	}
	balancing, stop := context.WithCancel(ctx)
	defer stop()
	var background sync.WaitGroup
	background.Go(func() { b.observe(balancing) })
	for _, m := range b.members {
		if err := m.start(); err != nil {
			return nil, err
		}
	}
	if !until(ctx, settleLimit, b.settled) {
		return nil, errors.Join(ctx.Err(), fmt.Errorf("the nodes do not lead all roles within %v: %s", settleLimit, b.describeMissing()))
	}
	b.mark(&h.Start)
	background.Go(func() { b.balance(balancing) })
	background.Go(func() { b.probe(balancing) })
	background.Go(func() { b.compareFigures(balancing) })
	b.play(ctx, steps)
	if !until(ctx, settleLimit, b.settled) && ctx.Err() == nil {
		b.recordViolation("%v after the last fault: %s", settleLimit, b.describeMissing())
	}
	b.mark(&h.End)
	stop()
	background.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err := b.finish(ctx); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.SortFunc(h.Faults, func(a, b record.Fault) int { return int(a.From - b.From) })
	return h, nil
}

func (b *bed) mark(at *int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*at = record.Now()
}

// describeMissing lists the nodes without a session and the roles without a leader.
func (b *bed) describeMissing() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var nodes []string
	led := map[string]bool{}
	for _, m := range b.members {
		if !m.connected {
			nodes = append(nodes, m.name)
		}
		for role := range m.leads {
			led[role] = true
		}
	}
	roles := slices.DeleteFunc(slices.Clone(b.history.Roles), func(role string) bool { return led[role] })
	return fmt.Sprintf("the nodes %v have no session, and the roles %v no leader", nodes, roles)
}

// finish ends all writing, waits until everything that was written is processed,
// shuts the nodes down, and reads what is in the database.
func (b *bed) finish(ctx context.Context) error {
	for _, m := range b.members {
		if err := m.process.Say("quiet"); err != nil {
			b.recordViolation("%s does not listen: %v", m.name, err)
		}
	}
	conn, err := pgx.Connect(ctx, b.admin)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var cutoff time.Time // of the ticks that are judged
	if err := conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&cutoff); err != nil {
		return err
	}
	last, before := "?", ""
	for last != before && last != "" && err == nil && ctx.Err() == nil {
		before = last
		until(ctx, catchUpLimit, func() bool { last, err = b.behind(ctx, conn, cutoff); return err != nil || last == "" })
	}
	if last != "" {
		b.recordViolation("nothing was finished in the last %v after the end: %s", catchUpLimit, last)
	}
	if err != nil {
		return err
	}
	b.shutDown(ctx)
	return b.collect(ctx, conn, cutoff)
}

// behind describes the work that is not yet processed; empty if there is none.
func (b *bed) behind(ctx context.Context, conn *pgx.Conn, cutoff time.Time) (string, error) {
	if err := b.replayLetters(ctx); err != nil {
		return "", err
	}
	var events, applied, letters, changes, runs int
	err := conn.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM tenure_events), (SELECT count(*) FROM chaos_applied), (SELECT count(*) FROM chaos_letters),
			(SELECT count(*) FROM tenure_processors WHERE rebuild OR status <> 'active'),
			(SELECT count(*) FROM tenure_runs WHERE state IN ('waiting', 'running') AND scheduled_for <= $1)
				+ (SELECT count(*) FROM tenure_schedules WHERE handled_until < date_trunc('second', $1))`, cutoff).Scan(&events, &applied, &letters, &changes, &runs)
	b.mu.Lock()
	defer b.mu.Unlock()
	delivered := map[string]bool{}
	for _, d := range b.history.Deliveries {
		delivered[d.ID] = true
	}
	if err != nil || applied >= events && letters >= events && changes == 0 && len(delivered) >= events && runs == 0 {
		return "", err
	}
	return fmt.Sprintf("of %d events the view has %d, the processor with dead letters %d and the receiver %d, %d processors are not active, and %d runs of schedules have not begun or not ended", events, applied, letters, len(delivered), changes, runs), nil
}

// shutDown ends all nodes gracefully, together.
func (b *bed) shutDown(ctx context.Context) {
	var ending sync.WaitGroup
	for _, m := range b.members {
		ending.Go(func() {
			if err := m.terminate(ctx, shutdownLimit); err != nil && ctx.Err() == nil {
				b.recordViolation("%v", err)
			}
		})
	}
	ending.Wait()
}

// collect reads what is in the database.
func (b *bed) collect(ctx context.Context, conn *pgx.Conn, cutoff time.Time) error {
	h := &b.history
	b.mu.Lock()
	defer b.mu.Unlock()
	ledger, err := query[record.Entry](ctx, conn, "SELECT role, position, term, sequence FROM chaos_ledger ORDER BY role, position")
	if err != nil {
		return err
	}
	events, err := query[record.Event](ctx, conn, `
		SELECT data->>'ID' AS id, (data->'Amount')::bigint AS amount, coalesce(a.count, 0) AS applied, coalesce(l.count, 0) AS letters
		FROM tenure_events
		LEFT JOIN (SELECT id, count(*) FROM chaos_applied GROUP BY id) a ON a.id = data->>'ID'
		LEFT JOIN (SELECT id, count(*) FROM chaos_letters GROUP BY id) l ON l.id = data->>'ID'
		ORDER BY transaction_id, position`)
	if err != nil {
		return err
	}
	runs, err := query[record.Run](ctx, conn, `
		SELECT schedule, id, (extract(epoch FROM scheduled_for) * 1000000000)::bigint AS "ScheduledFor", ticks, state,
			coalesce(t.count, 0) AS effects, manual
		FROM tenure_runs LEFT JOIN (SELECT run, count(*) FROM chaos_ticks GROUP BY run) t ON t.run = id
		WHERE scheduled_for <= $1`, cutoff)
	if err != nil {
		return err
	}
	h.Ledger, h.Events, h.Runs = ledger, events, runs
	if b.begins, err = query[begin](ctx, conn, allBegins); err != nil {
		return err
	}
	return conn.QueryRow(ctx, "SELECT amount FROM chaos_total").Scan(&h.ViewSum)
}

func query[T any](ctx context.Context, conn *pgx.Conn, sql string, args ...any) ([]T, error) {
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[T])
}

// faultCounts counts the faults that were carried out, by kind.
func faultCounts(h *record.History) map[string]int {
	counts := map[string]int{}
	for _, f := range h.Faults {
		if f.Failed == "" && f.Kind != check.Overload {
			counts[f.Kind]++
		}
	}
	return counts
}

func total(counts map[string]int) int {
	sum := 0
	for n := range maps.Values(counts) {
		sum += n
	}
	return sum
}
