package cron

import (
	"context"
	"time"
)

// unhandled are due ticks not handled by any leader.
type unhandled struct {
	until *time.Time // the last of them; nil if there is none
	at    []time.Time
	ticks []int64 // of each row; more than 1 where a row has several
}

// unhandled returns up to when the ticks of a schedule are handled, and the due ticks
// after this time. It returns none if the schedule is paused, or its ticks are not known
// here.
func (m *Admin) unhandled(ctx context.Context, name string) (handled *time.Time, late unhandled, err error) {
	all, now, err := m.statuses(ctx, &name)
	if err != nil || len(all) == 0 || all[0].Paused {
		return nil, late, err
	}
	s := all[0]
	expression, err := parseIn(s.Expression, s.Zone)
	if err != nil {
		return nil, late, nil //nolint:nilerr // the pause itself needs no ticks
	}
	t := timetable{Schedule: Schedule{Name: s.Name, Jitter: s.Jitter}, expression: expression}
	missed := ticks{keep: maxMissed + 1}
	begin, passed := expression.passOver(s.HandledUntil, now.Add(-s.Jitter), missed.keep)
	missed.count = passed
	for tick := expression.Next(begin); !tick.IsZero() && !t.due(tick).After(now); tick = expression.Next(tick) {
		missed.add(tick)
		late.until = &tick
	}
	for _, e := range missed.entries() {
		late.at, late.ticks = append(late.at, e.at), append(late.ticks, e.ticks)
	}
	return &s.HandledUntil, late, nil
}
