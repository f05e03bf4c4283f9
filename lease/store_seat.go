package lease

import (
	"context"
	"database/sql"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// Seat is who led a namespace when the database was asked.
type Seat struct {
	Leader uuid.UUID // uuid.Nil if nobody leads
	// Term is the number of the leader's term, a fencing token. It grows whenever
	// the seat changes hands, also when a leader takes it again that had let it
	// lapse: to the milliseconds since 1970 by the database's clock, or by one if
	// that is more. It is no count of terms.
	Term      int64
	ExpiresAt time.Time // by the database's clock

	// ValidFor is how long the lease still ran, as the database computed it, and
	// ReadAt when it was asked, with its monotonic reading: the lease runs until
	// ReadAt + ValidFor at least. No local clock is compared with the database's.
	ValidFor time.Duration
	ReadAt   time.Time
}

// Holds reports whether a candidate holds the seat now, as far as this answer of
// the database goes: its lease has not run out since. It asks nobody. On a
// machine that was suspended the wall clock, which goes on, ends it too.
func (s Seat) Holds(candidate uuid.UUID) bool {
	if s.Leader != candidate || candidate == uuid.Nil {
		return false
	}
	now := time.Now()
	return now.Sub(s.ReadAt) < s.ValidFor && now.Round(0).Sub(s.ReadAt.Round(0)) < s.ValidFor
}

// holding is the row of a seat.
type holding struct {
	namespace string
	leader    uuid.UUID // uuid.Nil if it is vacant
	term      int64
	// counted tells that the term is this leader's: other programs write a new
	// leader without a new term.
	counted   bool
	expiresAt int64         // microseconds since 1970
	remaining time.Duration // by the database's clock
	validFor  time.Duration // as far as that clock can be read
	readAt    time.Time
}

// sqliteTick is how far the clock of SQLite, which counts milliseconds, may be
// behind the time: for so much longer it says that a lease runs.
const sqliteTick = time.Millisecond

// live reports whether somebody's lease runs.
func (h holding) live() bool { return h.leader != uuid.Nil && h.remaining > 0 }

func (h holding) seat() Seat {
	if h.leader == uuid.Nil {
		return Seat{Term: h.term, ReadAt: h.readAt}
	}
	return Seat{
		Leader:    h.leader,
		Term:      h.term,
		ExpiresAt: time.UnixMicro(h.expiresAt).UTC(),
		ValidFor:  max(h.validFor, 0),
		ReadAt:    h.readAt,
	}
}

// holdings reads the rows of namespaces, with the query that locks them or with
// the one that does not. A row that this package cannot have written is an error.
func (s *Store) holdings(ctx context.Context, on querier, query string, namespaces []string) (map[string]holding, error) {
	found := make(map[string]holding, len(namespaces))
	readAt := time.Now()
	err := s.forEach(ctx, on, query, len(namespaces), func(rows *sql.Rows) error {
		h := holding{readAt: readAt}
		var leader sql.NullString
		var remaining int64
		if err := rows.Scan(&h.namespace, &leader, &h.term, &h.counted, &h.expiresAt, &remaining); err != nil {
			return err
		}
		h.remaining = time.Duration(remaining) * time.Microsecond
		h.validFor = h.remaining
		if s.dialect == SQLite {
			h.validFor -= sqliteTick
		}
		if leader.Valid {
			var err error
			if h.leader, err = parseID(h.namespace, leader.String); err != nil {
				return err
			}
		}
		found[h.namespace] = h
		return nil
	}, arguments(namespaces)...)
	if err != nil {
		return nil, err
	}
	return found, sharing(namespaces, found)
}

// IsLeader reports whether a candidate leads a namespace, by the database's
// clock. An answer from outside a transaction may be out of date when it arrives;
// see [Seat.Holds] for one that ages.
//
// In a caller's transaction it is a fence: it locks the seat, on SQLite the file,
// so that what it answers stays true until the transaction ends, and what the
// transaction writes is written by the leader or not at all. Make it the last
// statement before the commit: the leader's own renewal waits for it too.
func (s *Store) IsLeader(ctx context.Context, namespace string, candidate uuid.UUID) (bool, error) {
	namespace, err := checked(namespace, candidate)
	if err != nil {
		return false, err
	}
	query := s.queries.seats
	if s.tx != nil {
		query = s.queries.seatsShared
	}
	leads := false
	err = s.question(ctx, "ask who leads", func(ctx context.Context, on querier) error {
		if s.tx != nil && s.dialect == SQLite {
			if err := s.execute(ctx, on, s.queries.lockFile, 1, namespace); err != nil {
				return err
			}
		}
		found, err := s.holdings(ctx, on, query, []string{namespace})
		h := found[namespace]
		leads = h.live() && h.leader == candidate
		return err
	})
	return leads && err == nil, err
}

// Leader returns who leads a namespace, for those who do not stand in it. It
// returns an error that matches tenure.ErrNoLeader if nobody does.
func (s *Store) Leader(ctx context.Context, namespace string) (Seat, error) {
	namespace, err := checkedNamespace(namespace)
	if err != nil {
		return Seat{}, err
	}
	var h holding
	err = s.question(ctx, "read the leader", func(ctx context.Context, on querier) error {
		found, err := s.holdings(ctx, on, s.queries.seats, []string{namespace})
		h = found[namespace]
		return err
	})
	if err == nil && h.live() && !h.counted {
		h, err = s.countLeader(ctx, namespace)
	}
	switch {
	case err != nil:
		return Seat{}, err
	case !h.live():
		return Seat{}, tenure.ErrNoLeader
	}
	return h.seat(), nil
}

// countLeader gives the term a new number that another program did not give.
func (s *Store) countLeader(ctx context.Context, namespace string) (h holding, err error) {
	err = s.write(ctx, "count a change of the leader", func(ctx context.Context, on querier) error {
		if err := s.execute(ctx, on, s.queries.count, 1, namespace); err != nil {
			return err
		}
		found, err := s.holdings(ctx, on, s.queries.seatsLocked, []string{namespace})
		h = found[namespace]
		return err
	})
	return h, err
}
