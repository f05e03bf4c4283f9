package cron

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// adopt takes over what the scheduler is to run from now on.
func (l *loop) adopt() {
	known, active := l.byName, map[string]*schedule{}
	for _, s := range l.active {
		active[s.Name] = s // also of those that were left out before
	}
	l.schedules, l.byName = nil, map[string]*schedule{}
	for _, t := range l.source() {
		s := known[t.Name]
		switch {
		case s != nil && s.same(t):
		case s != nil:
			s.loaded, s.handledUntil = false, time.Time{}
		case active[t.Name] != nil:
			s = active[t.Name]
			s.loaded, s.handledUntil = false, time.Time{}
		default:
			s = &schedule{}
		}
		s.timetable = t // at least its job may be another
		l.schedules = append(l.schedules, s)
		l.byName[t.Name] = s
	}
	for name := range known {
		l.dropped = append(l.dropped, name)
	}
	l.dropped = slices.DeleteFunc(l.dropped, func(name string) bool { return l.byName[name] != nil })
	l.known = false
}

// same reports whether two schedules differ in nothing but their jobs.
func (t timetable) same(other timetable) bool {
	return t.Zone == other.Zone && t.expression.String() == other.expression.String() && t.settings() == other.settings()
}

// release says of schedules that were left out that this term does not know them.
func (l *loop) release(ctx context.Context) error {
	if len(l.dropped) == 0 {
		return nil
	}
	err := l.fenced(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, l.tables.SQL(releaseSchedules), l.dropped, l.term.Role().Name(), l.term.Number())
		return err
	})
	if err != nil {
		return fmt.Errorf("releasing schedules: %w", err)
	}
	l.dropped = nil
	return nil
}
