package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// Lease is the leader of a namespace when the database was read.
type Lease struct {
	Holder uuid.UUID // uuid.Nil if the namespace has no leader
	// Term is the number of the leader's term, a fencing token. It increases when the
	// leader changes, and when a leader acquires an expired lease again: to the
	// milliseconds since 1970 by the database's clock, or by one if larger. It does not
	// count terms.
	Term      int64
	ExpiresAt time.Time // by the database's clock

	// ValidFor is the remaining time of the lease, as the database computed it, and
	// ReadAt the local time just before the database was read, with its monotonic
	// reading. The lease lasts at least until ReadAt + ValidFor. No local clock is
	// compared with the database's.
	ValidFor time.Duration
	ReadAt   time.Time
}

// HeldBy reports whether a candidate still holds the lease now. It does not read the
// database. The lease also ends by the wall clock, because it advances while a machine is
// suspended.
func (l Lease) HeldBy(candidate uuid.UUID) bool {
	if l.Holder != candidate || candidate == uuid.Nil {
		return false
	}
	now := time.Now()
	return now.Sub(l.ReadAt) < l.ValidFor && now.Round(0).Sub(l.ReadAt.Round(0)) < l.ValidFor
}

// leaderRow is a row of the table of leaders.
type leaderRow struct {
	namespace string
	leader    uuid.UUID // uuid.Nil if there is none
	term      int64
	// ownTerm reports whether the term is this leader's: other programs write a new
	// leader without a new term.
	ownTerm   bool
	expiresAt int64         // microseconds since 1970
	remaining time.Duration // by the database's clock
	length    time.Duration // from the last renewal to the expiry
	validFor  time.Duration // remaining, less the resolution of that clock
	readAt    time.Time
}

// sqliteTick is the resolution of SQLite's clock: a lease can end this much earlier than
// by the clock.
const sqliteTick = time.Millisecond

// isFalse reports whether a lease has more than twice its length left: the clock was ahead
// when it was renewed. The renewal was at the latest now, so one length from now it is over.
func (r leaderRow) isFalse() bool { return r.length > 0 && r.remaining > 2*r.length }

// held reports whether a candidate's lease has not expired.
func (r leaderRow) held() bool { return r.leader != uuid.Nil && r.remaining > 0 }

func (r leaderRow) lease() Lease {
	if r.leader == uuid.Nil {
		return Lease{Term: r.term, ReadAt: r.readAt}
	}
	return Lease{
		Holder:    r.leader,
		Term:      r.term,
		ExpiresAt: time.UnixMicro(r.expiresAt).UTC(),
		ValidFor:  max(r.validFor, 0),
		ReadAt:    r.readAt,
	}
}

// readRows reads the rows of namespaces with one of the queries for leaders. It returns an
// error for a row of another program.
func (s *Store) readRows(ctx context.Context, on sqldb.Querier, query string, namespaces []string) (map[string]leaderRow, error) {
	found := make(map[string]leaderRow, len(namespaces))
	readAt := time.Now()
	err := s.forEach(ctx, on, query, len(namespaces), func(rows *sql.Rows) error {
		r := leaderRow{readAt: readAt}
		var leader sql.NullString
		var remaining, length int64
		if err := rows.Scan(&r.namespace, &leader, &r.term, &r.ownTerm, &r.expiresAt, &remaining, &length); err != nil {
			return err
		}
		r.remaining, r.length = time.Duration(remaining)*time.Microsecond, time.Duration(length)*time.Microsecond
		r.validFor = r.remaining
		if r.isFalse() { // no reader must trust it for longer
			r.validFor = r.length
			r.expiresAt -= remaining - length
		}
		if s.db.Dialect == sqldb.SQLite {
			r.validFor -= sqliteTick
		}
		if leader.Valid {
			var err error
			if r.leader, err = parseID(r.namespace, leader.String); err != nil {
				return err
			}
		}
		found[r.namespace] = r
		return nil
	}, arguments(namespaces)...)
	if err != nil {
		return nil, err
	}
	return found, checkShared(namespaces, found)
}

// IsLeader reports whether a candidate leads a namespace, by the database's clock. Outside
// a transaction the answer can be out of date when it arrives; see [Lease.HeldBy] for an
// answer with an expiry.
//
// In a caller's transaction it is a fence. It locks the row of the namespace, on SQLite
// the file: its answer stays true until the transaction ends. If it reports true, the
// transaction's writes are by the leader only. Call it as the last statement before the
// commit: the leader's own renewal waits for it too.
func (s *Store) IsLeader(ctx context.Context, namespace string, candidate uuid.UUID) (bool, error) {
	namespace, err := checkCandidate(namespace, candidate)
	if err != nil {
		return false, err
	}
	query := s.queries.leaders
	if s.tx != nil {
		query = s.queries.leadersShared
	}
	leads := false
	err = s.read(ctx, "read the leader", func(ctx context.Context, on sqldb.Querier) error {
		if s.tx != nil && s.db.Dialect == sqldb.SQLite {
			if err := s.execute(ctx, on, s.queries.lockFile, 1, namespace); err != nil {
				return err
			}
		}
		found, err := s.readRows(ctx, on, query, []string{namespace})
		row := found[namespace]
		leads = row.held() && row.leader == candidate
		return err
	})
	return leads && err == nil, err
}

// Leader returns the lease of a namespace without becoming a candidate. The error
// matches tenure.ErrNoLeader if the namespace has no leader.
func (s *Store) Leader(ctx context.Context, namespace string) (Lease, error) {
	namespace, err := checkNamespace(namespace)
	if err != nil {
		return Lease{}, err
	}
	var row leaderRow
	err = s.read(ctx, "read the leader", func(ctx context.Context, on sqldb.Querier) error {
		found, err := s.readRows(ctx, on, s.queries.leaders, []string{namespace})
		row = found[namespace]
		return err
	})
	if err == nil && row.held() && !row.ownTerm {
		row, err = s.assignTerm(ctx, namespace)
	}
	switch {
	case err != nil:
		return Lease{}, err
	case !row.held():
		return Lease{}, tenure.ErrNoLeader
	}
	return row.lease(), nil
}

// assignTerm assigns a new term number to a leader elected by another program.
func (s *Store) assignTerm(ctx context.Context, namespace string) (row leaderRow, err error) {
	err = s.write(ctx, "assign a term", func(ctx context.Context, on sqldb.Querier) error {
		if err := s.execute(ctx, on, s.queries.assignTerm, 1, namespace); err != nil {
			return err
		}
		found, err := s.readRows(ctx, on, s.queries.leadersLocked, []string{namespace})
		row = found[namespace]
		return err
	})
	return row, err
}
