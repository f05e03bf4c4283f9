package processor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// DeadLetter is an event among the dead letters: given up by its processor, or
// skipped by somebody.
type DeadLetter struct {
	ID        int64
	Event     Cursor // its place in the log, where it stays
	Error     string // of the last attempt
	Attempts  int    // that failed
	Term      int64  // of the last one
	FailedAt  time.Time
	SkippedBy string // who skipped it; empty if the processor gave it up
	Replay    bool   // it is to be replayed, and was not yet
}

// DeadLetters returns the dead letters of a processor that were not replayed, in
// the order of the log, up to a limit.
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

// Replay has the leader hand dead letters to the handler again, those with the
// ids, or all if ids is nil, and returns how many there are; if nobody leads, as
// soon as somebody does. They come one at a time, in the order of the log, after
// events that came later, and between batches of new ones; not while the
// processor is paused or has failed. What Handle does happens exactly once, with
// the end of the dead letter; Publish may publish an event again. One that fails
// stays a dead letter, with the new error.
//
// Ids that are not those of dead letters of the processor are refused with an
// error that matches tenure.ErrInvalidConfig, and nothing is replayed.
func (m *Admin) Replay(ctx context.Context, name string, ids []int64, by string) (int, error) {
	var found []int64
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
				return "", invalid("%s has no dead letter %d that could be replayed", name, id)
			}
		}
		return fmt.Sprintf("dead letters: %d", len(found)), nil
	})
	if err != nil && !errors.Is(err, errUnchanged) {
		return 0, err
	}
	return len(found), nil
}
