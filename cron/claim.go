package cron

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// batch has the changes of one transaction.
type batch struct {
	ended  []outcome
	plans  map[string]plan
	names  []string // names of the schedules with plans
	starts map[string]int
}

func (b batch) empty() bool { return len(b.ended) == 0 && len(b.plans) == 0 && len(b.starts) == 0 }

// prepare decides on the next changes to write.
func (l *loop) prepare() batch {
	b := batch{ended: l.reported(), plans: map[string]plan{}, starts: map[string]int{}}
	if l.stopping() || !l.schedulesKnown { // checked last, since reading the schedules takes time
		return b
	}
	ended, retried := map[*schedule]int{}, map[*schedule]int{}
	for _, o := range b.ended {
		ended[l.active[o.run.ID]]++
		if o.state == Waiting {
			retried[l.active[o.run.ID]]++
		}
	}
	now := l.clock.now()
	for _, s := range l.schedules {
		busy := s.running > ended[s]
		if s.ticks() && !s.next.After(now) {
			if p := s.plan(s.handledUntil, now, l.config.Grace, busy, s.waiting+retried[s]); len(p.entries) > 0 {
				b.plans[s.Name] = p
				b.names = append(b.names, s.Name)
			}
		}
		switch {
		case !s.loaded || s.waiting == 0 || s.startAt.After(now):
		case retried[s] > 0: // which of the waiting runs is first is known after the next read
		case s.Overlap == OverlapAllow:
			b.starts[s.Name] = min(s.waiting, maxStarts)
		case !busy:
			b.starts[s.Name] = 1
		}
	}
	return b
}

// claimed is a row inserted by claimTicks, or a schedule without one.
type claimed struct {
	name         string
	id           *int64
	scheduledFor *time.Time
	state        *State
}

// writeBatch records ended runs, claims due ticks and starts waiting runs in
// one transaction. After its commit it starts the jobs.
func (l *loop) writeBatch(ctx context.Context, b batch) error {
	var ticks []claimed
	var starts []started
	err := l.fenced(ctx, func(tx pgx.Tx) error {
		pipeline := &pgx.Batch{}
		if len(b.ended) > 0 {
			l.queueEnds(pipeline, b.ended)
		}
		if len(b.plans) > 0 {
			l.queueTicks(pipeline, b, &ticks)
		}
		if len(b.starts) > 0 {
			l.queueStarts(pipeline, b.starts, &starts)
		}
		return tx.SendBatch(ctx, pipeline).Close()
	})
	if err != nil {
		return fmt.Errorf("claim and record runs: %w", err)
	}
	for _, o := range b.ended {
		l.schedulesKnown = l.schedulesKnown && o.state != Waiting // read when the retry is due
		l.active[o.run.ID].running--
		delete(l.active, o.run.ID)
	}
	l.recorded(len(b.ended))
	l.ticksClaimed(ctx, b, ticks)
	l.startsClaimed(ctx, b.starts, starts)
	return nil
}

func (l *loop) queueEnds(pipeline *pgx.Batch, ended []outcome) {
	var ids, delays []int64
	var attempts []int32
	var states, errors, outputs []string
	for _, o := range ended {
		if o.state == Running {
			continue
		}
		ids, attempts, delays = append(ids, o.run.ID), append(attempts, int32(o.run.Attempt)), append(delays, o.delay.Microseconds())
		states, errors, outputs = append(states, string(o.state)), append(errors, o.text), append(outputs, o.output)
	}
	pipeline.Queue(l.tables.SQL(recordEnds), l.term.Number(), ids, attempts, states, errors, delays, outputs)
}

func (l *loop) queueTicks(pipeline *pgx.Batch, b batch, found *[]claimed) {
	var names, schedules, states []string
	var handled, until, due, times []time.Time
	var counts []int64
	var late []bool
	for _, name := range b.names {
		p := b.plans[name]
		names, handled = append(names, name), append(handled, l.byName[name].handledUntil)
		until, due, late = append(until, p.until), append(due, p.due), append(late, p.late)
		for _, e := range p.entries {
			schedules, times = append(schedules, name), append(times, e.at)
			states, counts = append(states, string(e.state)), append(counts, e.ticks)
		}
	}
	pipeline.Queue(l.tables.SQL(claimTicks), l.term.Role().Name(), l.term.Number(), l.node.ID(),
		names, handled, until, due, l.node.Name(), schedules, times, states, counts, late).
		Query(func(rows pgx.Rows) (err error) {
			*found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (c claimed, err error) {
				return c, row.Scan(&c.name, &c.id, &c.scheduledFor, &c.state)
			})
			return err
		})
}

// ticksClaimed records the claimed ticks and starts their jobs.
func (l *loop) ticksClaimed(ctx context.Context, b batch, found []claimed) {
	moved := map[string]bool{}
	for _, c := range found {
		s := l.byName[c.name]
		if !moved[c.name] {
			moved[c.name] = true
			s.handledUntil = b.plans[c.name].until
			s.next = s.timetable.next(s.handledUntil)
		}
		if c.id == nil { // its rows existed: they were claimed before an operator turned the schedule back
			continue
		}
		switch *c.state {
		case Running:
			l.begin(ctx, s, Run{ID: *c.id, ScheduledFor: *c.scheduledFor, Attempt: 1})
		case Waiting:
			s.waiting++
		}
	}
	for _, name := range b.names {
		l.schedulesKnown = l.schedulesKnown && moved[name]
		if moved[name] {
			l.logSkipped(name, b.plans[name])
		}
	}
}

// logSkipped logs ticks without a run.
func (l *loop) logSkipped(name string, p plan) {
	counts := map[State]int64{}
	for _, e := range p.entries {
		counts[e.state] += e.ticks
	}
	if counts[Missed] > 0 {
		l.log.Warn("ticks were missed", "schedule", name, "ticks", counts[Missed], "until", p.until)
	}
	if counts[Skipped] > 0 {
		l.log.Warn("ticks were skipped: an earlier run has not ended", "schedule", name, "ticks", counts[Skipped], "until", p.until)
	}
}

// started is a claimed run with its schedule's name.
type started struct{ Run }

func collectStarted(rows pgx.Rows) ([]started, error) {
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s started, err error) {
		var state State
		return s, row.Scan(&s.ID, &s.Schedule, &s.ScheduledFor, &state, &s.Attempt, &s.Manual, &s.RequestedBy, &s.claimedAt)
	})
	slices.SortFunc(found, func(a, b started) int { return a.ScheduledFor.Compare(b.ScheduledFor) })
	return found, err
}

func (l *loop) queueStarts(pipeline *pgx.Batch, starts map[string]int, found *[]started) {
	var names []string
	var most []int32
	var parallel []bool
	for name, n := range starts {
		names, most, parallel = append(names, name), append(most, int32(n)), append(parallel, l.byName[name].Overlap == OverlapAllow)
	}
	pipeline.Queue(l.tables.SQL(startWaiting), l.term.Number(), l.node.ID(), l.node.Name(), names, most, l.term.Role().Name(), parallel).
		Query(func(rows pgx.Rows) (err error) {
			*found, err = collectStarted(rows)
			return err
		})
}

func (l *loop) startsClaimed(ctx context.Context, asked map[string]int, found []started) {
	missing := 0
	for _, n := range asked {
		missing += n
	}
	for _, one := range found {
		s := l.byName[one.Schedule]
		s.waiting--
		l.begin(ctx, s, one.Run)
	}
	l.schedulesKnown = l.schedulesKnown && len(found) == missing
}
