package lease

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// seat is the row of a role as it was read, with the session of its holder.
type seat struct {
	role, key     string
	term          int64
	holder        sql.NullInt64 // incarnation
	endedAt       sql.NullInt64 // null while a term runs
	readyAt       sql.NullInt64
	reservedFor   sql.NullString
	reservedUntil sql.NullInt64
	beganAt       sql.NullInt64
	vacant        sql.NullInt64

	// Of the holder's session, null if it left.
	node      sql.NullString
	expiresAt sql.NullInt64
	goneAt    sql.NullInt64

	now int64 // the database's clock when the row was read
}

// stands reports whether the holder's session has not ended.
func (t *seat) stands() bool { return t.holder.Valid && t.node.Valid && !t.goneAt.Valid }

// unclean reports whether a term runs whose session has ended.
func (t *seat) unclean() bool { return t.holder.Valid && !t.endedAt.Valid && !t.stands() }

// TryAcquire implements [tenure.Session].
func (s *session) TryAcquire(candidates []tenure.AcquireRequest) ([]tenure.AcquireResult, error) {
	if err := s.sendable(); err != nil {
		return nil, err
	}
	if len(candidates) == 0 {
		return nil, nil
	}
	limit := s.opening.Timing.RefreshInterval
	ctx, cancel := s.limited(limit)
	defer cancel()
	attempts, err := s.batches.run(candidates, max(limit, leastLimit), func(part []tenure.AcquireRequest) ([]tenure.AcquireResult, error) {
		return s.tryAcquire(ctx, part)
	})
	return attempts, s.failed(err)
}

func (s *session) tryAcquire(ctx context.Context, candidates []tenure.AcquireRequest) ([]tenure.AcquireResult, error) {
	if err := s.addSeats(ctx, candidates); err != nil {
		return nil, err
	}
	roles := make([]string, len(candidates))
	for i, c := range candidates {
		roles[i] = c.Role.Name()
	}
	seats, err := s.readSeats(ctx, roles)
	if err != nil {
		return nil, err
	}
	if err := s.buryHolders(ctx, seats); err != nil {
		return nil, err
	}

	attempts := make([]tenure.AcquireResult, len(candidates))
	var free []*seat
	for i, c := range candidates {
		found := seats[c.Role.Name()]
		if found == nil {
			delete(s.known, c.Role.Name()) // look again the next time
			attempts[i] = failed(fmt.Errorf("%w: the key %s of %s belongs to another role", tenure.ErrKeyMismatch, keyOf(c.Role), c.Role))
			continue
		}
		var mayTake bool
		if attempts[i], mayTake = s.examine(c, found); mayTake {
			free = append(free, found)
		}
	}
	if len(free) == 0 {
		return attempts, nil
	}
	taken, err := s.take(ctx, free)
	if err != nil {
		return nil, err
	}
	for i, c := range candidates {
		if attempt, ok := taken[c.Role.Name()]; ok {
			attempts[i] = attempt
		}
	}
	return attempts, nil
}

func failed(err error) tenure.AcquireResult {
	return tenure.AcquireResult{Outcome: tenure.OutcomeFailed, Err: err}
}

// keyOf is the lock key of a role in its row: two names with one key would be
// one role on PostgreSQL, so they are no two here.
func keyOf(role tenure.Role) string { return role.LockKey(uuid.Nil).String() }

// examine says what stands against taking a seat, if anything does.
func (s *session) examine(c tenure.AcquireRequest, t *seat) (attempt tenure.AcquireResult, mayTake bool) {
	switch {
	case t.key != keyOf(c.Role):
		return failed(fmt.Errorf("%w: %s has the key %s, not %s", tenure.ErrKeyMismatch, c.Role, t.key, keyOf(c.Role))), false
	case t.holder.Valid && t.holder.Int64 == s.incarnation && !t.endedAt.Valid:
		// The commit that began this term was not answered, but it happened. A term
		// that this session has ended before comes from a server that lost the end.
		before, tried := s.before[t.role]
		if !tried {
			return failed(errEnded()), false
		}
		delete(s.doubtful, t.role)
		return granted(t.term, before, t.beganAt.Int64, t.vacant), false
	case t.holder.Valid && t.holder.Int64 == s.incarnation:
		left := microseconds(t.readyAt.Int64 - t.now)
		return tenure.AcquireResult{Outcome: tenure.OutcomePending, RetryIn: max(left, 0)}, left <= 0
	case t.stands():
		attempt := tenure.AcquireResult{Outcome: tenure.OutcomeHeld}
		if c.Recovering {
			attempt.Holder, _ = uuid.Parse(t.node.String) // unknown if it is none
		}
		return attempt, false
	case t.reservedFor.Valid && t.reservedFor.String != s.opening.Node.ID.String() && t.reservedUntil.Int64 > t.now:
		return tenure.AcquireResult{Outcome: tenure.OutcomeHeld, RetryIn: microseconds(t.reservedUntil.Int64 - t.now)}, false
	}
	return tenure.AcquireResult{}, true
}

func granted(term, previous, beganAt int64, vacant sql.NullInt64) tenure.AcquireResult {
	attempt := tenure.AcquireResult{Outcome: tenure.OutcomeGranted, Term: term, Previous: previous, AcquiredAt: time.UnixMicro(beganAt), PrecedingVacancy: -1}
	if vacant.Valid && vacant.Int64 >= 0 {
		attempt.PrecedingVacancy = microseconds(vacant.Int64)
	}
	return attempt
}

func microseconds(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// addSeats makes rows for roles that this session has not tried before.
func (s *session) addSeats(ctx context.Context, candidates []tenure.AcquireRequest) error {
	var missing []tenure.Role
	for _, c := range candidates {
		if _, known := s.known[c.Role.Name()]; !known {
			missing = append(missing, c.Role)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	names := make([]string, len(missing))
	for i, role := range missing {
		names[i] = role.Name()
	}
	present, err := s.readSeats(ctx, names)
	if err != nil {
		return err
	}
	missing = slices.DeleteFunc(missing, func(role tenure.Role) bool { return present[role.Name()] != nil })
	slices.SortFunc(missing, func(a, b tenure.Role) int { return cmp.Compare(a.Name(), b.Name()) })
	if len(missing) > 0 {
		err = s.backend.db.InTx(ctx, "add roles", func(ctx context.Context, on sqldb.Querier) error {
			for part := range slices.Chunk(missing, sqldb.MaxList) {
				if err := s.addRows(ctx, on, part); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, name := range names {
		s.known[name] = struct{}{}
	}
	return nil
}

// addRows makes rows for roles with one statement.
func (s *session) addRows(ctx context.Context, on sqldb.Querier, roles []tenure.Role) error {
	q := s.backend.queries
	rows, args := make([]string, len(roles)), make([]any, 0, 2*len(roles))
	for i, role := range roles {
		rows[i] = q.newSeat
		args = append(args, role.Name(), keyOf(role))
	}
	statement := strings.Replace(q.addSeats, "%s", strings.Join(rows, ", "), 1)
	return sqldb.Exec(ctx, on, s.backend.db.Dialect.Render(statement), args...)
}

// readSeats reads the seats of roles, by role.
func (s *session) readSeats(ctx context.Context, roles []string) (map[string]*seat, error) {
	seats := make(map[string]*seat, len(roles))
	err := s.backend.db.Read(ctx, "read seats", func(ctx context.Context, on sqldb.Querier) error {
		return sqldb.InLists(s.backend.db.Dialect, s.backend.queries.readSeats, roles, nil, func(query string, args []any) error {
			return sqldb.ForEach(ctx, on, query, func(rows *sql.Rows) error {
				t := &seat{}
				err := rows.Scan(&t.role, &t.key, &t.term, &t.holder, &t.endedAt, &t.readyAt, &t.reservedFor, &t.reservedUntil,
					&t.beganAt, &t.vacant, &t.node, &t.expiresAt, &t.goneAt, &t.now)
				seats[t.role] = t
				return err
			}, args...)
		})
	})
	return seats, err
}

// buryHolders records the end of the sessions that hold seats but have run out.
// A heartbeat that is under way excludes this, and is excluded by it.
func (s *session) buryHolders(ctx context.Context, seats map[string]*seat) error {
	silent := map[int64]struct{}{}
	for _, t := range seats {
		if t.stands() && t.expiresAt.Int64 <= t.now {
			silent[t.holder.Int64] = struct{}{}
		}
	}
	if len(silent) == 0 {
		return nil
	}
	incarnations := slices.Sorted(maps.Keys(silent))
	gone := map[int64]int64{}
	err := s.backend.db.InTx(ctx, "record expired leases", func(ctx context.Context, on sqldb.Querier) error {
		clear(gone)
		err := sqldb.InLists(s.backend.db.Dialect, s.backend.queries.expire, incarnations, nil, func(query string, args []any) error {
			return sqldb.Exec(ctx, on, query, args...)
		})
		if err != nil {
			return err
		}
		err = sqldb.InLists(s.backend.db.Dialect, s.backend.queries.expired, incarnations, nil, func(query string, args []any) error {
			return sqldb.ForEach(ctx, on, query, func(rows *sql.Rows) error {
				var incarnation, at int64
				err := rows.Scan(&incarnation, &at)
				gone[incarnation] = at
				return err
			}, args...)
		})
		if err != nil {
			return err
		}
		return sqldb.Exec(ctx, on, s.backend.queries.vacancy)
	})
	if err != nil {
		return err
	}
	for _, t := range seats {
		if at, ok := gone[t.holder.Int64]; ok && t.holder.Valid {
			t.goneAt = sql.NullInt64{Int64: at, Valid: true}
		}
	}
	return nil
}

// disownDoubtful gives up seats whose taking was not answered and that nobody
// asked for again.
func (s *session) disownDoubtful(ctx context.Context) error {
	if len(s.doubtful) == 0 {
		return nil
	}
	roles := slices.Sorted(maps.Keys(s.doubtful))
	err := s.backend.db.InTx(ctx, "give up roles", func(ctx context.Context, on sqldb.Querier) error {
		// The commit in doubt may still be under way. It has locked the rows; the
		// next statement sees what has become of them.
		err := s.inLists(ctx, on, s.backend.queries.awaitSeats, roles)
		if err != nil {
			return err
		}
		err = sqldb.InLists(s.backend.db.Dialect, s.backend.queries.disown, roles, []any{string(tenure.EndResigned), s.incarnation},
			func(query string, args []any) error { return sqldb.Exec(ctx, on, query, args...) })
		if err != nil {
			return err
		}
		return sqldb.Exec(ctx, on, s.backend.queries.vacancy)
	})
	if err == nil {
		clear(s.doubtful)
	}
	return err
}
