package lease

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// Elect takes the seat of a namespace for a candidate, or renews its lease, and
// returns the seat as it is then: the leader is the candidate, or another whose
// lease still runs. A seat is taken if it is vacant or its lease has run out. The
// candidate is registered too, whether it wins or not.
//
// A seat whose leader is not a UUID is left alone: a [ForeignRowError].
func (s *Store) Elect(ctx context.Context, namespace string, candidate uuid.UUID) (Seat, error) {
	seats, err := s.ElectAll(ctx, candidate, []string{namespace})
	if err != nil {
		return Seat{}, err
	}
	return seats[0], nil
}

// ElectAll is [Store.Elect] for many namespaces, in one transaction and few
// statements: to renew ten thousand leases takes little longer than one. It
// returns one Seat for each namespace, in the same order. After an error nothing
// has changed.
func (s *Store) ElectAll(ctx context.Context, candidate uuid.UUID, namespaces []string) ([]Seat, error) {
	names := make([]string, len(namespaces))
	for i, namespace := range namespaces {
		var err error
		if names[i], err = checked(namespace, candidate); err != nil {
			return nil, err
		}
	}
	// Sorted, so that transactions lock in one order.
	distinct := slices.Compact(slices.Sorted(slices.Values(names)))
	found := make(map[string]holding, len(distinct))
	err := s.write(ctx, "elect", func(ctx context.Context, on querier) error {
		clear(found)
		for part := range slices.Chunk(distinct, maxNamespaces) {
			if err := s.elect(ctx, on, candidate, part, found); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	seats := make([]Seat, len(names))
	for i, name := range names {
		seats[i] = found[name].seat()
	}
	return seats, nil
}

// elect adds the seats of sorted namespaces to found. What a leader does again
// and again is three statements: no row is locked that it does not hold.
func (s *Store) elect(ctx context.Context, on querier, candidate uuid.UUID, namespaces []string, found map[string]holding) error {
	if err := s.touch(ctx, on, candidate, namespaces); err != nil {
		return err
	}
	id := candidate.String()
	if err := s.execute(ctx, on, s.queries.renew, len(namespaces), arguments(namespaces, id, id)...); err != nil {
		return err
	}
	// The caller's transaction may read from an old snapshot; a lock does not.
	open := namespaces
	if s.tx == nil {
		seats, err := s.holdings(ctx, on, s.queries.seats, namespaces)
		if err != nil {
			return err
		}
		maps.Copy(found, seats)
		open = slices.DeleteFunc(slices.Clone(namespaces), func(namespace string) bool {
			h := found[namespace]
			return h.live() && h.counted
		})
	}
	if len(open) == 0 {
		return nil
	}
	return s.contend(ctx, on, candidate, open, found)
}

// contend locks the seats of sorted namespaces, which nobody may hold, and adds
// them to found as they are afterwards.
func (s *Store) contend(ctx context.Context, on querier, candidate uuid.UUID, namespaces []string, found map[string]holding) error {
	locked, err := s.lock(ctx, on, namespaces)
	if err != nil {
		return err
	}
	var free, uncounted []string
	for _, namespace := range namespaces {
		switch h := locked[namespace]; {
		case !h.live(), h.leader == candidate && !h.counted:
			free = append(free, namespace)
		case !h.counted:
			uncounted = append(uncounted, namespace)
			s.config.Logger.Info("another program elected a leader", "namespace", namespace, "leader", h.leader)
		}
	}
	id := candidate.String()
	if len(free) > 0 {
		args := append([]any{id, id, id}, arguments(free, id)...)
		if err := s.execute(ctx, on, s.queries.take, len(free), args...); err != nil {
			return err
		}
	}
	if len(uncounted) > 0 {
		if err := s.execute(ctx, on, s.queries.count, len(uncounted), arguments(uncounted)...); err != nil {
			return err
		}
	}
	if len(free)+len(uncounted) > 0 {
		if locked, err = s.holdings(ctx, on, s.queries.seatsLocked, namespaces); err != nil {
			return err
		}
	}
	maps.Copy(found, locked)
	return nil
}

// lock locks the rows of seats and adds those that do not exist yet. Two that
// add the same row at once are no error: the second finds it.
func (s *Store) lock(ctx context.Context, on querier, namespaces []string) (map[string]holding, error) {
	locked, err := s.holdings(ctx, on, s.queries.seatsLocked, namespaces)
	if err != nil || len(locked) == len(namespaces) {
		return locked, err
	}
	missing := slices.DeleteFunc(slices.Clone(namespaces), func(namespace string) bool {
		_, there := locked[namespace]
		return there
	})
	if err := s.execute(ctx, on, s.queries.add, len(missing), arguments(missing)...); err != nil {
		return nil, err
	}
	locked, err = s.holdings(ctx, on, s.queries.seatsLocked, namespaces)
	if err == nil && len(locked) < len(namespaces) {
		return nil, fmt.Errorf("%w: a row that was just added to the table of leaders cannot be found", tenure.ErrSchema)
	}
	return locked, err
}
