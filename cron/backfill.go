package cron

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// maxBackfill is the maximum number of ticks of one backfill.
const maxBackfill = 1000

// Backfilled is the result of [Admin.Backfill].
type Backfilled struct {
	Ticks int // ticks of the range
	Runs  int // runs that were requested: ticks that had none
}

// Backfill requests runs of the ticks from from until before to, if they have no run or
// were missed or skipped. The leader runs them in the order of the ticks, as its Overlap
// allows, with from's tick first; while the schedule is paused they wait. Each tick runs
// at most once, also if it is due or backfilled at the same time. The range must not end
// in the future and has at most 1000 ticks of the present expression. by is the requester
// to record.
func (m *Admin) Backfill(ctx context.Context, name string, from, to time.Time, by string) (Backfilled, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	if err := checkBy(by); err != nil {
		return Backfilled{}, err
	}
	for {
		statuses, now, err := m.statuses(ctx, &name)
		if err != nil {
			return Backfilled{}, err
		}
		if len(statuses) == 0 {
			return Backfilled{}, m.unknown(ctx, name)
		}
		s := statuses[0]
		ticks, err := s.ticksWithin(from, to, now)
		if err != nil || len(ticks) == 0 {
			return Backfilled{}, err
		}
		done := Backfilled{Ticks: len(ticks)}
		span := from.UTC().Format(time.RFC3339) + " to " + to.UTC().Format(time.RFC3339)
		err = m.one(ctx, backfill, []any{name, s.Expression, s.Zone, ticks, by, span, m.tables.Channel("")}, &done.Runs, nil)
		switch {
		case err == nil:
			return done, nil
		case !errors.Is(err, pgx.ErrNoRows):
			return Backfilled{}, fmt.Errorf("backfill %s: %w", name, err)
		}
		// The schedule was changed or removed since it was read: read it again.
	}
}

// ticksWithin returns the ticks of a range for a backfill.
func (s Status) ticksWithin(from, to, now time.Time) ([]time.Time, error) {
	switch {
	case from.Year() < 1970:
		return nil, invalid("the range of the backfill begins at %s; it must begin in 1970 or later", from.Format(time.RFC3339))
	case !from.Before(to):
		return nil, invalid("the range of the backfill ends at %s; it must end after its beginning, %s", to.Format(time.RFC3339), from.Format(time.RFC3339))
	case to.After(now):
		return nil, invalid("the range of the backfill ends at %s, in the future; it is %s", to.Format(time.RFC3339), now.Format(time.RFC3339))
	}
	expression, err := parseIn(s.Expression, s.Zone)
	if err != nil {
		return nil, err
	}
	var ticks []time.Time
	for tick := expression.Next(from.Add(-1)); !tick.IsZero() && tick.Before(to); tick = expression.Next(tick) {
		if len(ticks) == maxBackfill {
			return nil, invalid("the range of the backfill has more than %d ticks; use several shorter ranges", maxBackfill)
		}
		ticks = append(ticks, tick)
	}
	return ticks, nil
}
