package cron

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/schema"
)

// load claims the schedules with rows of other terms.
func (l *loop) load(ctx context.Context) error {
	var names, expressions, zones, texts []string
	var added []bool
	for _, s := range l.schedules {
		if s.loaded {
			continue
		}
		text, err := s.encodeSettings()
		if err != nil {
			return err
		}
		names, expressions, zones = append(names, s.Name), append(expressions, s.expression.String()), append(zones, s.Zone)
		texts, added = append(texts, text), append(added, s.added)
	}
	if len(names) == 0 {
		return nil
	}
	if err := l.tables.Create(ctx); err != nil {
		return err
	}
	var loaded []string
	var open []Record
	err := l.fenced(ctx, func(tx pgx.Tx) error {
		if !l.begun {
			if err := schema.EndStaleTransactions(ctx, tx, l.markKey()); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, l.tables.SQL(addSchedules), l.term.Role().Name(), names, expressions, zones, texts, added, time.Now()); err != nil {
			return err
		}
		own, err := l.lock(ctx, tx, names)
		if err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, l.tables.SQL(loadSchedules), l.term.Role().Name(), l.term.Number(), names, expressions, zones, texts, added, time.Now()) // rows reports the error
		if loaded, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return err
		}
		again, owned := make([]bool, len(loaded)), make([]bool, len(loaded))
		for i, name := range loaded {
			again[i], owned[i] = l.byName[name].Policy == AtLeastOnce, own[name]
		}
		rows, _ = tx.Query(ctx, l.tables.SQL(takeOver), loaded, again, l.activeRuns(), owned, l.term.Number())
		open, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Record, err error) {
			return r, row.Scan(&r.Schedule, &r.ScheduledFor, &r.State, &r.Attempt, &r.Error)
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("load the schedules: %w", err)
	}
	l.begun = true
	l.logTakeOver(names, loaded, open)
	return nil
}

// lock locks the rows of schedules, and returns the ones already claimed by this term.
func (l *loop) lock(ctx context.Context, tx pgx.Tx, names []string) (own map[string]bool, err error) {
	rows, _ := tx.Query(ctx, l.tables.SQL(lockSchedules), names, l.term.Role().Name(), l.term.Number()) // rows reports the error
	own = map[string]bool{}
	var name string
	var is bool
	_, err = pgx.ForEachRow(rows, []any{&name, &is}, func() error {
		own[name] = is
		return nil
	})
	return own, err
}

// activeRuns returns the ids of the runs with a started job. It never returns nil: this
// would be NULL in SQL.
func (l *loop) activeRuns() []int64 {
	return slices.AppendSeq(make([]int64, 0, len(l.active)), maps.Keys(l.active))
}

func (l *loop) logTakeOver(names, loaded []string, open []Record) {
	for _, name := range names {
		s := l.byName[name]
		s.loaded = slices.Contains(loaded, name)
		if !s.loaded && !s.refused {
			l.log.Error("a schedule belongs to another role, which has a leader; it runs here when that role has none", "schedule", name)
		}
		s.refused = !s.loaded
	}
	for _, r := range open {
		log := l.log.With("schedule", r.Schedule, "scheduled_for", r.ScheduledFor, "error", r.Error)
		if r.State == Abandoned {
			log.Error("a run was abandoned")
		} else {
			log.Warn("a run is repeated", "attempt", r.Attempt)
		}
	}
}

// recover starts the jobs of runs claimed by a transaction with an unacknowledged commit,
// however late it committed.
func (l *loop) recover(ctx context.Context) error {
	var names []string
	for _, s := range l.schedules {
		names = append(names, s.Name)
	}
	bounded, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	rows, _ := l.tables.Query(bounded, readRunning, names, l.term.Number()) // rows reports the error
	found, err := collectStarted(rows)
	if err != nil {
		return fmt.Errorf("read the runs: %w", err)
	}
	for _, one := range found {
		if l.active[one.ID] == nil {
			l.begin(ctx, l.byName[one.Schedule], one.Run)
		}
	}
	return nil
}
