package cron

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// adopt applies the scheduler's current schedules.
func (l *loop) adopt() {
	known, active := l.byName, map[string]*schedule{}
	for _, s := range l.active {
		active[s.Name] = s // including schedules that were removed earlier
	}
	l.schedules, l.byName = nil, map[string]*schedule{}
	for _, t := range l.source() {
		s := known[t.Name]
		switch {
		case s != nil && s.sameSettings(t):
		case s != nil:
			s.loaded, s.handledUntil = false, time.Time{}
		case active[t.Name] != nil:
			s = active[t.Name]
			s.loaded, s.handledUntil = false, time.Time{}
		default:
			s = &schedule{}
		}
		s.timetable = t // its job may have changed
		l.schedules = append(l.schedules, s)
		l.byName[t.Name] = s
	}
	for name := range known {
		l.removed = append(l.removed, name)
	}
	l.removed = slices.DeleteFunc(l.removed, func(name string) bool { return l.byName[name] != nil })
	l.schedulesKnown = false
}

// sameSettings reports whether t and other are equal apart from their jobs.
func (t timetable) sameSettings(other timetable) bool {
	return t.Zone == other.Zone && t.expression.String() == other.expression.String() && t.settings() == other.settings()
}

// release marks removed schedules as not loaded by this term.
func (l *loop) release(ctx context.Context) error {
	if len(l.removed) == 0 {
		return nil
	}
	err := l.fenced(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, l.tables.SQL(releaseSchedules), l.removed, l.term.Role().Name(), l.term.Number())
		return err
	})
	if err != nil {
		return fmt.Errorf("releasing schedules: %w", err)
	}
	l.removed = nil
	return nil
}
