package processor

import (
	"context"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// Skip moves the cursor past the failing event and moves the event to the dead letters. It
// can be replayed from there. A failed processor becomes active; a pause stays. Skip
// returns the event's cursor. A concurrent attempt does not count, although a publisher
// may have taken the event.
//
// Pass the event of [Status.Failing]. Then a call repeated after a lost response skips no
// other event; skipping an event twice is not an error. The zero Cursor means whichever
// event fails now.
//
// The error matches tenure.ErrInvalidConfig in these cases:
//
//   - No event fails, or another event than the given one.
//   - The failing event of a batch is not yet known, because the leader still tries its
//     events one at a time.
//   - No event is to blame; see [ErrUnavailable].
func (m *Admin) Skip(ctx context.Context, name string, event Cursor, by string) (Cursor, error) {
	transaction := strconv.FormatUint(event.Transaction, 10)
	place, err := m.changeRow(ctx, name, by, "skip", skipEvent, name, by, transaction, event.Position)
	if err == nil {
		return ParseCursor(place)
	}
	if !errors.Is(err, errUnchanged) {
		return Cursor{}, err
	}
	skipped, err := collect(ctx, m.tables, "look for the event at "+event.String(), pgx.RowTo[int64], wasSkipped, name, transaction, event.Position)
	if err != nil {
		return Cursor{}, err
	}
	s, err := m.Show(ctx, name)
	switch {
	case err != nil:
		return Cursor{}, err
	case len(skipped) > 0:
		return event, nil
	case s.Errors == 0:
		return Cursor{}, invalid("no event of %s fails: there is nothing to skip", name)
	case event != Cursor{} && s.Failing != Cursor{}:
		return Cursor{}, invalid("the event of %s at %s does not fail: the one at %s does", name, event, s.Failing)
	default:
		return Cursor{}, invalid("no event of %s is known to fail: what its handler needs is unavailable, or its leader still tries "+
			"the events of a batch one at a time: run tenure processor retry; its last error: %s", name, s.LastError)
	}
}
