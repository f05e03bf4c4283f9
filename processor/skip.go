package processor

import (
	"context"
	"errors"
)

// Skip passes over the one event that fails now, and puts it among the dead
// letters, from where it can be replayed. A processor that has failed works
// again; a pause stays. It returns the place of the event. An attempt that is
// being made meanwhile does not count, though a publisher may have taken the
// event.
//
// It is refused with an error that matches tenure.ErrInvalidConfig if nothing
// fails, if it is not known yet which event of a batch does, since the leader
// then tries them one at a time, or if no event is to blame; see
// [ErrUnavailable].
func (m *Management) Skip(ctx context.Context, name, by string) (Cursor, error) {
	place, err := m.changeRow(ctx, name, by, "skip", skipEvent, name, by)
	if err == nil {
		return ParseCursor(place)
	}
	if !errors.Is(err, errUnchanged) {
		return Cursor{}, err
	}
	s, err := m.Show(ctx, name)
	switch {
	case err != nil:
		return Cursor{}, err
	case s.Errors == 0:
		return Cursor{}, invalid("no event of %s fails: there is nothing to skip", name)
	default:
		return Cursor{}, invalid("no event of %s is known to be at fault: either what its handler needs is not available, "+
			"or its leader still tries the events of a batch one at a time, which retrying hastens; its last error: %s", name, s.LastError)
	}
}
