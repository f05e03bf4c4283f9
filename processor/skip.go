package processor

import (
	"context"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// Skip passes over the one event that fails now, and puts it among the dead
// letters, from where it can be replayed. A processor that has failed works
// again; a pause stays. It returns the place of the event. An attempt that is
// being made meanwhile does not count, though a publisher may have taken the
// event.
//
// Name the event, as [Status.Failing] has it: then a call that is repeated because
// its answer was lost skips no other. An event that was skipped already is no
// error. The zero Cursor is whichever event fails now.
//
// It is refused with an error that matches tenure.ErrInvalidConfig if nothing
// fails, or another event than the named one, if it is not known yet which event
// of a batch does, since the leader then tries them one at a time, or if no event
// is to blame; see [ErrUnavailable].
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
		return Cursor{}, invalid("no event of %s is known to be at fault: either what its handler needs is not available, "+
			"or its leader still tries the events of a batch one at a time, which retrying hastens; its last error: %s", name, s.LastError)
	}
}
