package processor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// DeadLetter is an event that was set aside: its processor could not handle it,
// or an operator skipped it.
type DeadLetter struct {
	ID        int64
	Event     Cursor // its cursor in the log, where it stays
	Error     string // of the last attempt
	Attempts  int    // failed attempts
	Term      int64  // term of the last attempt
	FailedAt  time.Time
	SkippedBy string // who skipped it; empty if the processor moved it
	Replay    bool   // a replay was requested and has not succeeded yet
}

// DeadLetters returns the dead letters of a processor in log order, except
// replayed ones, up to a limit.
func (m *Admin) DeadLetters(ctx context.Context, name string, limit int) ([]DeadLetter, error) {
	if err := checkLimit(limit); err != nil {
		return nil, err
	}
	letters, err := collect(ctx, m.tables, "list dead letters", scanLetter, listDeadLetters, name, limit)
	if err == nil && len(letters) == 0 {
		_, err = m.Show(ctx, name)
	}
	return letters, err
}

func scanLetter(row pgx.CollectableRow) (l DeadLetter, err error) {
	return l, row.Scan(&l.ID, &l.Event.Transaction, &l.Event.Position, &l.Error, &l.Attempts, &l.Term, &l.FailedAt, &l.SkippedBy, &l.Replay)
}

// Replay requests that the leader handles dead letters again: those with the
// ids, or all if ids is nil. It returns how many there are. If the role has no
// leader, the next leader replays them. They are handled one at a time, in log
// order, after later events and between new batches, but not while the
// processor is paused or has failed. What Handle does and the end of the dead
// letter happen exactly once, in one transaction; Publish may publish an event
// again. An event that fails stays a dead letter with the new error.
//
// If an id is not that of a dead letter of the processor, the error matches
// tenure.ErrInvalidConfig and nothing is replayed.
func (m *Admin) Replay(ctx context.Context, name string, ids []int64, by string) (int, error) {
	var found []int64
	missing := ""
	err := m.change(ctx, name, by, "replay", func(ctx context.Context, tx pgx.Tx) (string, error) {
		rows, err := tx.Query(ctx, m.tables.SQL(replayDeadLetters), name, ids)
		if err != nil {
			return "", err
		}
		if found, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
			return "", err
		}
		if len(found) == 0 && len(ids) == 0 {
			return "", errUnchanged
		}
		for _, id := range ids {
			if !slices.Contains(found, id) {
				missing = fmt.Sprint(id)
				return "", errUnchanged
			}
		}
		return fmt.Sprintf("dead letters: %d", len(found)), nil
	})
	switch {
	case err != nil && !errors.Is(err, errUnchanged):
		return 0, err
	case missing != "":
		return 0, invalid("%s has no dead letter %s that could be replayed", name, missing)
	}
	return len(found), nil
}
