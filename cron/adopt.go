package cron

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// adopt applies the scheduler's current schedules, as operators have changed
// them.
func (l *loop) adopt() {
	known, active := l.byName, map[string]*schedule{}
	for _, s := range l.active {
		active[s.Name] = s // including schedules that were removed earlier
	}
	l.schedules, l.byName = nil, map[string]*schedule{}
	for _, t := range l.effective() {
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

// effective returns the program's schedules with the operators' changes, and the
// operators' schedules for the program's jobs.
func (l *loop) effective() []timetable {
	var all []timetable
	byName := map[string]timetable{}
	l.declared = []string{}
	l.failures.invalid = map[string]string{}
	for _, t := range l.source() {
		l.declared = append(l.declared, t.Name)
		byName[t.Name] = t
		if _, changed := l.overrides[t.Name]; !changed {
			all = append(all, t)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.overrides)) {
		t, ok, err := overridden(name, l.overrides[name], byName)
		if err != nil {
			l.log.Error("a schedule does not run here: an operator's override is invalid", "schedule", name, "error", err)
			l.failures.invalid[name] = "an operator's override is invalid: " + err.Error()
		}
		if ok && err == nil {
			all = append(all, t)
		}
	}
	return all
}

// overridden returns a schedule as operators have set it. It is not ok if the
// program has neither the schedule nor its job.
func overridden(name, stored string, declared map[string]timetable) (t timetable, ok bool, err error) {
	o, err := decodeOverride(stored)
	if err != nil {
		return timetable{}, false, err
	}
	base, ok := declared[name]
	if !ok {
		base, ok = declared[o.Job]
		base.Name, base.added = name, true
	}
	if !ok {
		return timetable{}, false, nil
	}
	t, err = o.apply(base.Schedule).parse()
	t.added = base.added
	return t, true, err
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
		return fmt.Errorf("release schedules: %w", err)
	}
	l.removed = nil
	return nil
}
