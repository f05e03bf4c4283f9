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
// fails, or if it is not known yet which event of a batch does: the leader then
// tries them one at a time.
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
		return Cursor{}, invalid("it is not known yet which event of %s fails: its leader tries those of the batch one at a time; "+
			"retry the processor, and skip again when the event is shown", name)
	}
}
