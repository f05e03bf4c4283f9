package cron

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// storedSchedule is the row of a schedule as read by its leader.
type storedSchedule struct {
	name             string
	loaded           bool // it belongs to this term
	override         *string
	paused           bool
	handledUntil     time.Time
	waiting, running int
	oldest, soonest  *time.Time // when the oldest and the first of the waiting runs may start
	ahead            bool       // a clock that was ahead has left times in its rows
	failing          bool       // a failure of its leader is recorded
	now              time.Time  // by the database's clock
}

// read reads the rows of the schedules, the operators' settings, and the database's clock.
func (l *loop) read(ctx context.Context) error {
	rows, err := l.readRows(ctx)
	if err != nil {
		return fmt.Errorf("read the schedules: %w", err)
	}
	if len(rows) > 0 {
		l.clock.set(rows[0].now)
	}
	if slices.ContainsFunc(rows, func(row storedSchedule) bool { return row.loaded && row.ahead }) {
		return l.turnBack(ctx) // and read again
	}
	found, overrides := map[string]bool{}, map[string]string{}
	unknown := false // a run was claimed that this process does not know of
	for _, row := range rows {
		if row.override != nil {
			overrides[row.name] = *row.override
		}
		if !row.loaded {
			continue
		}
		found[row.name] = true
		l.failures.recorded = l.failures.recorded || row.failing
		if s := l.byName[row.name]; s != nil {
			s.update(row)
			unknown = unknown || row.running > s.running
		}
	}
	for _, s := range l.schedules {
		s.loaded = s.loaded && found[s.Name]
	}
	l.schedulesKnown, l.readAt = true, time.Now()
	if !maps.Equal(l.overrides, overrides) {
		l.overrides = overrides
		l.adopt() // and read again
		return nil
	}
	if unknown {
		return l.recover(ctx)
	}
	return nil
}

// update applies the row of a schedule of this term.
func (s *schedule) update(row storedSchedule) {
	if !s.handledUntil.Equal(row.handledUntil) {
		s.handledUntil, s.next = row.handledUntil, s.timetable.next(row.handledUntil)
	}
	s.paused, s.waiting, s.startAt = row.paused, row.waiting, time.Time{}
	start := row.oldest
	if s.Overlap == OverlapAllow {
		start = row.soonest
	}
	if start != nil {
		s.startAt = *start
	}
}

func (l *loop) readRows(ctx context.Context) ([]storedSchedule, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	rows, err := l.tables.Query(ctx, readSchedules, l.term.Role().Name(), l.term.Number(), l.declared, l.config.Grace.Microseconds())
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s storedSchedule, err error) {
		return s, row.Scan(&s.name, &s.loaded, &s.override, &s.paused, &s.handledUntil, &s.waiting, &s.running, &s.oldest, &s.soonest, &s.ahead, &s.failing, &s.now)
	})
}
