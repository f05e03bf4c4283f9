package processor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// DeadLetter is an event set aside: its processor could not handle it, or an operator
// skipped it.
type DeadLetter struct {
	ID        int64
	Event     Cursor // its cursor in the log, where it stays
	Error     string // of the last attempt
	Attempts  int    // failed attempts
	Term      int64  // term of the last attempt
	FailedAt  time.Time
	SkippedBy string // who skipped it; empty if the processor moved it
	Replay    bool   // a replay was requested, and the leader has not handled it yet

	ReplayBy       string    // who requested the last replay; empty if no operator did
	ReplayFailedAt time.Time // when the last replay failed; zero if it did not, or waits

	DismissedBy string // who dismissed it; empty if no operator did
	DismissedAt time.Time
}

// DeadLetters returns the dead letters of a processor, except replayed ones, up to a
// limit: in log order, and dismissed ones last.
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
	var replayFailedAt, dismissedAt *time.Time
	err = row.Scan(&l.ID, &l.Event.Transaction, &l.Event.Position, &l.Error, &l.Attempts, &l.Term, &l.FailedAt, &l.SkippedBy, &l.Replay,
		&l.ReplayBy, &replayFailedAt, &l.DismissedBy, &dismissedAt)
	l.ReplayFailedAt, l.DismissedAt = value(replayFailedAt), value(dismissedAt)
	return l, err
}

// Replay requests another handling of dead letters by the leader: of those with the ids,
// or of all but the dismissed ones if ids is nil. It returns their number. If the role has
// no leader, the next leader replays them, but not while the processor is paused or has
// failed.
//
// Replayed events are handled after later events, in batches in log order. These batches
// take turns with batches of new events, which keep their order and wait for at most two
// batches. The effects of Handle and the end of the dead letters happen exactly once, in
// one transaction; Publish may publish events again. After the failure of a batch, its
// events are handled one at a time. An event that fails alone stays a dead letter with the
// new error.
//
// If an id is not the id of a dead letter of the processor, the error matches
// tenure.ErrInvalidConfig and nothing is replayed.
func (m *Admin) Replay(ctx context.Context, name string, ids []int64, by string) (int, error) {
	return m.changeLetters(ctx, name, by, "replay", ids, func(ctx context.Context, tx pgx.Tx) (found []int64, changed int, err error) {
		rows, _ := tx.Query(ctx, m.tables.SQL(replayDeadLetters), name, ids, by) // rows reports the error
		found, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return found, len(found), err
	})
}

// Dismiss marks dead letters as handled by a person, outside of the processor: the ones
// with the ids, or all if ids is nil. It returns their number. A dismissed dead letter is
// still listed, with its requester, but it does not count as a dead letter. A requested
// replay is canceled; a replay of Publish in progress may still publish the event. Replay
// with its id takes the dismissal back. Dismissing a dead letter twice is not an error,
// and keeps the first requester.
//
// If an id is not the id of a dead letter of the processor, the error matches
// tenure.ErrInvalidConfig and nothing is dismissed.
func (m *Admin) Dismiss(ctx context.Context, name string, ids []int64, by string) (int, error) {
	return m.changeLetters(ctx, name, by, "dismiss", ids, func(ctx context.Context, tx pgx.Tx) (found []int64, changed int, err error) {
		rows, _ := tx.Query(ctx, m.tables.SQL(dismissDeadLetters), name, ids, by) // rows reports the error
		var id int64
		var waits bool
		_, err = pgx.ForEachRow(rows, []any{&id, &waits}, func() error {
			found = append(found, id)
			if waits {
				changed++
			}
			return nil
		})
		return found, changed, err
	})
}

// changeLetters changes dead letters, all if ids is nil, and records how many changed. fn
// returns the found dead letters. The result is their number.
func (m *Admin) changeLetters(
	ctx context.Context, name, by, action string, ids []int64, fn func(context.Context, pgx.Tx) (found []int64, changed int, err error),
) (int, error) {
	var found []int64
	missing := ""
	err := m.changeWithin(ctx, lettersTimeout, name, by, action, func(ctx context.Context, tx pgx.Tx) (detail string, err error) {
		var changed int
		if found, changed, err = fn(ctx, tx); err != nil {
			return "", err
		}
		for _, id := range ids {
			if !slices.Contains(found, id) {
				missing = fmt.Sprint(id)
				return "", errUnchanged
			}
		}
		if changed == 0 {
			return "", errUnchanged
		}
		return fmt.Sprintf("dead letters: %d", changed), nil
	})
	switch {
	case err != nil && !errors.Is(err, errUnchanged):
		return 0, err
	case missing != "":
		return 0, invalid("%s has no dead letter %s, or it was replayed already", name, missing)
	}
	return len(found), nil
}
