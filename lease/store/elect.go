package store

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// Elect acquires the lease of a namespace for a candidate if no other candidate holds it,
// or renews it if the candidate does. It returns the resulting lease, held by the
// candidate or by another. Elect also registers the candidate, whether it wins or not.
//
// If the stored leader is no UUID, Elect changes nothing and returns a
// [ForeignRowError].
func (s *Store) Elect(ctx context.Context, namespace string, candidate uuid.UUID) (Lease, error) {
	leases, err := s.ElectAll(ctx, candidate, []string{namespace})
	if err != nil {
		return Lease{}, err
	}
	return leases[0], nil
}

// ElectAll is [Store.Elect] for many namespaces in one transaction and few
// statements: renewing ten thousand leases takes little longer than renewing one.
// It returns one Lease for each namespace, in the same order. After an error
// nothing has changed.
func (s *Store) ElectAll(ctx context.Context, candidate uuid.UUID, namespaces []string) ([]Lease, error) {
	names := make([]string, len(namespaces))
	for i, namespace := range namespaces {
		var err error
		if names[i], err = checkCandidate(namespace, candidate); err != nil {
			return nil, err
		}
	}
	// Sorted: all transactions lock rows in the same order.
	distinct := slices.Compact(slices.Sorted(slices.Values(names)))
	found := make(map[string]leaderRow, len(distinct))
	err := s.write(ctx, "elect", func(ctx context.Context, on sqldb.Querier) error {
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
	leases := make([]Lease, len(names))
	for i, name := range names {
		leases[i] = found[name].lease()
	}
	return leases, nil
}

// elect adds the rows of sorted namespaces to found. A mere renewal runs three statements
// and locks only the leader's rows.
func (s *Store) elect(
	ctx context.Context, on sqldb.Querier, candidate uuid.UUID, namespaces []string, found map[string]leaderRow,
) error {
	if err := s.register(ctx, on, candidate, namespaces); err != nil {
		return err
	}
	id := candidate.String()
	if err := s.execute(ctx, on, s.queries.renew, len(namespaces), arguments(namespaces, id, id)...); err != nil {
		return err
	}
	// A caller's transaction can read an old snapshot, so there every row is locked.
	undecided := namespaces
	if s.tx == nil {
		rows, err := s.readRows(ctx, on, s.queries.leaders, namespaces)
		if err != nil {
			return err
		}
		maps.Copy(found, rows)
		undecided = slices.DeleteFunc(slices.Clone(namespaces), func(namespace string) bool {
			row := found[namespace]
			return row.held() && row.ownTerm && !row.isFalse()
		})
	}
	if len(undecided) == 0 {
		return nil
	}
	return s.acquire(ctx, on, candidate, undecided, found)
}

// acquire locks the rows of sorted namespaces, acquires the leases not held by other
// candidates, and adds the resulting rows to found.
func (s *Store) acquire(
	ctx context.Context, on sqldb.Querier, candidate uuid.UUID, namespaces []string, found map[string]leaderRow,
) error {
	locked, err := s.lockRows(ctx, on, namespaces)
	if err != nil {
		return err
	}
	var vacant, withoutTerm, ahead []string
	for _, namespace := range namespaces {
		if locked[namespace].isFalse() {
			ahead = append(ahead, namespace)
		}
		switch row := locked[namespace]; {
		case !row.held(), row.leader == candidate && !row.ownTerm:
			vacant = append(vacant, namespace)
		case !row.ownTerm:
			withoutTerm = append(withoutTerm, namespace)
			s.config.Logger.Info("another program elected a leader", "namespace", namespace, "leader", row.leader)
		}
	}
	id := candidate.String()
	if len(vacant) > 0 {
		args := append([]any{id, id, id}, arguments(vacant, id)...)
		if err := s.execute(ctx, on, s.queries.acquire, len(vacant), args...); err != nil {
			return err
		}
	}
	if len(withoutTerm) > 0 {
		if err := s.execute(ctx, on, s.queries.assignTerm, len(withoutTerm), arguments(withoutTerm)...); err != nil {
			return err
		}
	}
	if len(ahead) > 0 {
		if err := s.execute(ctx, on, s.queries.correct, len(ahead), arguments(ahead)...); err != nil {
			return err
		}
	}
	if len(vacant)+len(withoutTerm)+len(ahead) > 0 {
		if locked, err = s.readRows(ctx, on, s.queries.leadersLocked, namespaces); err != nil {
			return err
		}
	}
	maps.Copy(found, locked)
	return nil
}

// lockRows locks the rows of namespaces and adds missing ones. If two transactions
// add the same row, the second one finds it.
func (s *Store) lockRows(ctx context.Context, on sqldb.Querier, namespaces []string) (map[string]leaderRow, error) {
	locked, err := s.readRows(ctx, on, s.queries.leadersLocked, namespaces)
	if err != nil || len(locked) == len(namespaces) {
		return locked, err
	}
	missing := slices.DeleteFunc(slices.Clone(namespaces), func(namespace string) bool {
		_, present := locked[namespace]
		return present
	})
	if err := s.execute(ctx, on, s.queries.add, len(missing), arguments(missing)...); err != nil {
		return nil, err
	}
	locked, err = s.readRows(ctx, on, s.queries.leadersLocked, namespaces)
	if err == nil && len(locked) < len(namespaces) {
		return nil, fmt.Errorf("%w: the table of leaders lacks a row that was just added", dberr.ErrSchema)
	}
	return locked, err
}
