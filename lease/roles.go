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

// roleRow is the row of a role as it was read, with the session of its holder.
type roleRow struct {
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
	node           sql.NullString
	expiresAt      sql.NullInt64
	sessionEndedAt sql.NullInt64

	now int64 // the database's clock when the row was read
}

// sessionLive reports whether the holder's session has not ended.
func (t *roleRow) sessionLive() bool {
	return t.holder.Valid && t.node.Valid && !t.sessionEndedAt.Valid
}

// leftOpen reports whether a term runs whose session has ended.
func (t *roleRow) leftOpen() bool { return t.holder.Valid && !t.endedAt.Valid && !t.sessionLive() }

// TryAcquire implements [tenure.Session].
func (s *session) TryAcquire(candidates []tenure.AcquireRequest) ([]tenure.AcquireResult, error) {
	if err := s.checkSendable(); err != nil {
		return nil, err
	}
	if len(candidates) == 0 {
		return nil, nil
	}
	limit := s.options.Timing.RefreshInterval
	ctx, cancel := s.withTimeout(limit)
	defer cancel()
	attempts, err := s.batches.run(candidates, max(limit, minTimeout), func(part []tenure.AcquireRequest) ([]tenure.AcquireResult, error) {
		return s.tryAcquire(ctx, part)
	})
	return attempts, s.callError(err)
}

func (s *session) tryAcquire(ctx context.Context, candidates []tenure.AcquireRequest) ([]tenure.AcquireResult, error) {
	if err := s.addRoles(ctx, candidates); err != nil {
		return nil, err
	}
	roles := make([]string, len(candidates))
	for i, c := range candidates {
		roles[i] = c.Role.Name()
	}
	seats, err := s.readRoles(ctx, roles)
	if err != nil {
		return nil, err
	}
	if err := s.endExpiredSessions(ctx, seats); err != nil {
		return nil, err
	}

	attempts := make([]tenure.AcquireResult, len(candidates))
	var free []*roleRow
	for i, c := range candidates {
		found := seats[c.Role.Name()]
		if found == nil {
			delete(s.knownRoles, c.Role.Name()) // look again the next time
			attempts[i] = failedResult(fmt.Errorf("%w: the key %s of %s belongs to another role", tenure.ErrKeyMismatch, keyOf(c.Role), c.Role))
			continue
		}
		var mayTake bool
		if attempts[i], mayTake = s.checkAvailable(c, found); mayTake {
			free = append(free, found)
		}
	}
	if len(free) == 0 {
		return attempts, nil
	}
	taken, err := s.acquireRoles(ctx, free)
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

func failedResult(err error) tenure.AcquireResult {
	return tenure.AcquireResult{Outcome: tenure.OutcomeFailed, Err: err}
}

// keyOf is the lock key of a role in its row: two names with one key would be
// one role on PostgreSQL, so they are no two here.
func keyOf(role tenure.Role) string { return role.LockKey(uuid.Nil).String() }

// checkAvailable says what stands against taking a seat, if anything does.
func (s *session) checkAvailable(c tenure.AcquireRequest, t *roleRow) (attempt tenure.AcquireResult, mayTake bool) {
	switch {
	case t.key != keyOf(c.Role):
		return failedResult(fmt.Errorf("%w: %s has the key %s, not %s", tenure.ErrKeyMismatch, c.Role, t.key, keyOf(c.Role))), false
	case t.holder.Valid && t.holder.Int64 == s.incarnation && !t.endedAt.Valid:
		// The commit that began this term was not answered, but it happened. A term
		// that this session has ended before comes from a server that lost the end.
		before, tried := s.lastTerms[t.role]
		if !tried {
			return failedResult(errSessionEnded()), false
		}
		delete(s.unconfirmed, t.role)
		return grantedResult(t.term, before, t.beganAt.Int64, t.vacant), false
	case t.holder.Valid && t.holder.Int64 == s.incarnation:
		left := microseconds(t.readyAt.Int64 - t.now)
		return tenure.AcquireResult{Outcome: tenure.OutcomePending, RetryIn: max(left, 0)}, left <= 0
	case t.sessionLive():
		attempt := tenure.AcquireResult{Outcome: tenure.OutcomeHeld}
		if c.Recovering {
			attempt.Holder, _ = uuid.Parse(t.node.String) // unknown if it is none
		}
		return attempt, false
	case t.reservedFor.Valid && t.reservedFor.String != s.options.Node.ID.String() && t.reservedUntil.Int64 > t.now:
		return tenure.AcquireResult{Outcome: tenure.OutcomeHeld, RetryIn: microseconds(t.reservedUntil.Int64 - t.now)}, false
	}
	return tenure.AcquireResult{}, true
}

func grantedResult(term, previous, beganAt int64, vacant sql.NullInt64) tenure.AcquireResult {
	attempt := tenure.AcquireResult{Outcome: tenure.OutcomeGranted, Term: term, Previous: previous, AcquiredAt: time.UnixMicro(beganAt), PrecedingVacancy: -1}
	if vacant.Valid && vacant.Int64 >= 0 {
		attempt.PrecedingVacancy = microseconds(vacant.Int64)
	}
	return attempt
}

func microseconds(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// addRoles makes rows for roles that this session has not tried before.
func (s *session) addRoles(ctx context.Context, candidates []tenure.AcquireRequest) error {
	var missing []tenure.Role
	for _, c := range candidates {
		if _, known := s.knownRoles[c.Role.Name()]; !known {
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
	present, err := s.readRoles(ctx, names)
	if err != nil {
		return err
	}
	missing = slices.DeleteFunc(missing, func(role tenure.Role) bool { return present[role.Name()] != nil })
	slices.SortFunc(missing, func(a, b tenure.Role) int { return cmp.Compare(a.Name(), b.Name()) })
	if len(missing) > 0 {
		err = s.backend.db.InTx(ctx, "add roles", func(ctx context.Context, on sqldb.Querier) error {
			for part := range slices.Chunk(missing, sqldb.MaxList) {
				if err := s.addRoleRows(ctx, on, part); err != nil {
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
		s.knownRoles[name] = struct{}{}
	}
	return nil
}

// addRoleRows makes rows for roles with one statement.
func (s *session) addRoleRows(ctx context.Context, on sqldb.Querier, roles []tenure.Role) error {
	q := s.backend.queries
	rows, args := make([]string, len(roles)), make([]any, 0, 2*len(roles))
	for i, role := range roles {
		rows[i] = q.newRoleRow
		args = append(args, role.Name(), keyOf(role))
	}
	statement := strings.Replace(q.addRoles, "%s", strings.Join(rows, ", "), 1)
	return sqldb.Exec(ctx, on, s.backend.db.Dialect.Render(statement), args...)
}

// readRoles reads the seats of roles, by role.
func (s *session) readRoles(ctx context.Context, roles []string) (map[string]*roleRow, error) {
	seats := make(map[string]*roleRow, len(roles))
	err := s.backend.db.Read(ctx, "read seats", func(ctx context.Context, on sqldb.Querier) error {
		return sqldb.InLists(s.backend.db.Dialect, s.backend.queries.readRoles, roles, nil, func(query string, args []any) error {
			return sqldb.ForEach(ctx, on, query, func(rows *sql.Rows) error {
				t := &roleRow{}
				err := rows.Scan(&t.role, &t.key, &t.term, &t.holder, &t.endedAt, &t.readyAt, &t.reservedFor, &t.reservedUntil,
					&t.beganAt, &t.vacant, &t.node, &t.expiresAt, &t.sessionEndedAt, &t.now)
				seats[t.role] = t
				return err
			}, args...)
		})
	})
	return seats, err
}

// endExpiredSessions records the end of the sessions that hold seats but have run out.
// A heartbeat that is under way excludes this, and is excluded by it.
func (s *session) endExpiredSessions(ctx context.Context, seats map[string]*roleRow) error {
	silent := map[int64]struct{}{}
	for _, t := range seats {
		if t.sessionLive() && t.expiresAt.Int64 <= t.now {
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
		err := sqldb.InLists(s.backend.db.Dialect, s.backend.queries.endExpired, incarnations, nil, func(query string, args []any) error {
			return sqldb.Exec(ctx, on, query, args...)
		})
		if err != nil {
			return err
		}
		err = sqldb.InLists(s.backend.db.Dialect, s.backend.queries.readEnded, incarnations, nil, func(query string, args []any) error {
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
		return sqldb.Exec(ctx, on, s.backend.queries.announceVacancy)
	})
	if err != nil {
		return err
	}
	for _, t := range seats {
		if at, ok := gone[t.holder.Int64]; ok && t.holder.Valid {
			t.sessionEndedAt = sql.NullInt64{Int64: at, Valid: true}
		}
	}
	return nil
}

// releaseUnconfirmed gives up seats whose taking was not answered and that nobody
// asked for again.
func (s *session) releaseUnconfirmed(ctx context.Context) error {
	if len(s.unconfirmed) == 0 {
		return nil
	}
	roles := slices.Sorted(maps.Keys(s.unconfirmed))
	err := s.backend.db.InTx(ctx, "give up roles", func(ctx context.Context, on sqldb.Querier) error {
		// The commit in doubt may still be under way. It has locked the rows; the
		// next statement sees what has become of them.
		err := s.inLists(ctx, on, s.backend.queries.waitForRows, roles)
		if err != nil {
			return err
		}
		err = sqldb.InLists(s.backend.db.Dialect, s.backend.queries.releaseUnconfirmed, roles, []any{string(tenure.EndResigned), s.incarnation},
			func(query string, args []any) error { return sqldb.Exec(ctx, on, query, args...) })
		if err != nil {
			return err
		}
		return sqldb.Exec(ctx, on, s.backend.queries.announceVacancy)
	})
	if err == nil {
		clear(s.unconfirmed)
	}
	return err
}
