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
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/installation"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// roleRow is the row of a role and the session of its holder, as they were read.
type roleRow struct {
	role, key     string
	term          int64
	holder        sql.NullInt64 // incarnation of the session; null if vacant
	endedAt       sql.NullInt64 // null while a term runs
	readyAt       sql.NullInt64
	reservedFor   sql.NullString
	reservedUntil sql.NullInt64
	beganAt       sql.NullInt64
	vacant        sql.NullInt64

	// From the row of the holder's session; null if the session was closed.
	node           sql.NullString
	lastHeartbeat  sql.NullInt64
	expiresAt      sql.NullInt64
	leaseLength    sql.NullInt64
	sessionEndedAt sql.NullInt64

	now int64 // the database's clock when the row was read
}

// sessionLive reports whether the holder's session has not ended.
func (r *roleRow) sessionLive() bool {
	return r.holder.Valid && r.node.Valid && !r.sessionEndedAt.Valid
}

// isReserved reports whether the role is reserved. A reservation with more than twice its
// time left was made while the clock was ahead.
func (r *roleRow) isReserved() bool {
	left, length := r.reservedUntil.Int64-r.now, r.reservedUntil.Int64-r.endedAt.Int64
	return r.reservedFor.Valid && left > 0 && left <= 2*length
}

// hasFalseLease reports whether the holder's lease was written while the clock was ahead: see
// falseLeases.
func (r *roleRow) hasFalseLease() bool {
	return r.sessionLive() && r.expiresAt.Int64 > r.now+2*r.leaseLength.Int64
}

// leftOpen reports whether the term has not ended although its session has.
func (r *roleRow) leftOpen() bool { return r.holder.Valid && !r.endedAt.Valid && !r.sessionLive() }

// endedUncleanly reports whether the last term's session has ended without ending the
// term, and no session has reserved the role since. The row may have the end of the term
// already: see [session.closeSkipped].
func (r *roleRow) endedUncleanly() bool {
	return r.holder.Valid && !r.sessionLive() && (!r.endedAt.Valid || !r.readyAt.Valid)
}

// sameTerm reports whether two readings of a row have the same term, holder and key.
func (r *roleRow) sameTerm(other *roleRow) bool {
	return r.term == other.term && r.holder == other.holder && r.key == other.key
}

// TryAcquire implements [tenure.Session].
func (s *session) TryAcquire(requests []tenure.AcquireRequest) ([]tenure.AcquireResult, error) {
	if err := s.checkSendable(); err != nil {
		return nil, err
	}
	if len(requests) == 0 {
		return nil, nil
	}
	limit := s.options.Timing.RefreshInterval
	ctx, cancel := s.withTimeout(limit)
	defer cancel()
	results, err := s.batches.run(requests, max(limit, minTimeout), func(part []tenure.AcquireRequest) ([]tenure.AcquireResult, error) {
		return s.tryAcquire(ctx, part)
	})
	return results, s.callError(err)
}

func (s *session) tryAcquire(ctx context.Context, requests []tenure.AcquireRequest) ([]tenure.AcquireResult, error) {
	if err := s.addRoles(ctx, requests); err != nil {
		return nil, err
	}
	roles := make([]string, len(requests))
	for i, request := range requests {
		roles[i] = request.Role.Name()
	}
	byRole, err := s.readRoles(ctx, roles)
	if err != nil {
		return nil, err
	}
	if err := s.awaitReleases(ctx, byRole); err != nil {
		return nil, err
	}
	if err := s.correctHolders(ctx, byRole); err != nil {
		return nil, err
	}
	if err := s.endExpiredSessions(ctx, byRole); err != nil {
		return nil, err
	}

	results := make([]tenure.AcquireResult, len(requests))
	var available []*roleRow
	s.leaderNames = map[string]string{}
	for i, request := range requests {
		s.leaderNames[request.Role.Name()] = request.NodeName
		found := byRole[request.Role.Name()]
		if found == nil {
			delete(s.knownRoles, request.Role.Name()) // the next call tries again to add it
			results[i] = failedResult(fmt.Errorf("%w: the key %s of %s belongs to another role", tenure.ErrKeyMismatch, keyOf(request.Role), request.Role))
			continue
		}
		var ok bool
		if results[i], ok = s.checkAvailable(request, found); ok {
			available = append(available, found)
		}
	}
	if len(available) == 0 {
		return results, nil
	}
	acquired, err := s.acquireRoles(ctx, available)
	if err != nil {
		return nil, err
	}
	for i, request := range requests {
		if result, ok := acquired[request.Role.Name()]; ok {
			results[i] = result
		}
	}
	return results, nil
}

func failedResult(err error) tenure.AcquireResult {
	return tenure.AcquireResult{Outcome: tenure.OutcomeFailed, Err: err}
}

// keyOf returns the lock key in the row of a role. Two names with the same key would
// exclude each other on PostgreSQL, so here one of them is rejected.
func keyOf(role tenure.Role) string { return role.LockKey(uuid.Nil).String() }

// checkAvailable reports whether a role can be acquired, and otherwise the result.
func (s *session) checkAvailable(request tenure.AcquireRequest, row *roleRow) (result tenure.AcquireResult, ok bool) {
	switch {
	case row.key != keyOf(request.Role):
		return failedResult(installation.KeyMismatch(request.Role, row.key, uuid.Nil)), false
	case row.holder.Valid && row.holder.Int64 == s.incarnation && !row.endedAt.Valid:
		// The term began although its commit was not acknowledged. If this session did
		// not try to begin it, the server has lost the end of the term.
		before, tried := s.lastTerms[row.role]
		if !tried {
			return failedResult(errSessionEnded()), false
		}
		delete(s.unconfirmed, row.role)
		return grantedResult(row.term, before, row.beganAt.Int64, row.vacant), false
	case row.holder.Valid && row.holder.Int64 == s.incarnation:
		left := microseconds(row.readyAt.Int64 - row.now)
		return tenure.AcquireResult{Outcome: tenure.OutcomePending, RetryIn: max(left, 0)}, s.waitIsOver(left)
	case row.sessionLive():
		result := tenure.AcquireResult{Outcome: tenure.OutcomeHeld}
		if request.Recovering {
			result.Holder, _ = uuid.Parse(row.node.String) // the zero value if it is no UUID
		}
		return result, false
	case row.isReserved() && row.reservedFor.String != s.options.Node.ID.String():
		return tenure.AcquireResult{Outcome: tenure.OutcomeHeld, RetryIn: microseconds(row.reservedUntil.Int64 - row.now)}, false
	case request.YieldFor > 0 && row.term == request.YieldTerm && !row.isReserved():
		return tenure.AcquireResult{Outcome: tenure.OutcomeHeld, RetryIn: request.YieldFor}, false
	}
	return tenure.AcquireResult{}, true
}

func grantedResult(term, previous, beganAt int64, vacant sql.NullInt64) tenure.AcquireResult {
	return tenure.AcquireResult{
		Outcome: tenure.OutcomeGranted, Term: term, Previous: previous, AcquiredAt: time.UnixMicro(beganAt), PrecedingVacancy: orUnknown(vacant),
	}
}

func microseconds(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// addRoles adds rows for roles new to this session.
func (s *session) addRoles(ctx context.Context, requests []tenure.AcquireRequest) error {
	var missing []tenure.Role
	for _, request := range requests {
		if _, known := s.knownRoles[request.Role.Name()]; !known {
			missing = append(missing, request.Role)
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

// addRoleRows adds rows for roles with one statement.
func (s *session) addRoleRows(ctx context.Context, on sqldb.Querier, roles []tenure.Role) error {
	b := s.backend
	rows, args := make([]string, len(roles)), make([]any, 0, 2*len(roles))
	row := b.names.Replace(newRoleRow)
	for i, role := range roles {
		rows[i] = row
		args = append(args, role.Name(), keyOf(role))
	}
	statement := strings.Replace(b.sql(addRolesQuery), "%s", strings.Join(rows, ", "), 1)
	return sqldb.Exec(ctx, on, b.db.Dialect.Render(statement), args...)
}

// readRoles reads the rows of roles.
func (s *session) readRoles(ctx context.Context, roles []string) (map[string]*roleRow, error) {
	byRole := make(map[string]*roleRow, len(roles))
	err := s.backend.db.Read(ctx, "read roles", func(ctx context.Context, on sqldb.Querier) error {
		return sqldb.InLists(s.backend.db.Dialect, s.backend.sql(readRolesQuery), roles, nil, func(query string, args []any) error {
			return sqldb.ForEach(ctx, on, query, func(rows *sql.Rows) error {
				r := &roleRow{}
				err := rows.Scan(&r.role, &r.key, &r.term, &r.holder, &r.endedAt, &r.readyAt, &r.reservedFor, &r.reservedUntil,
					&r.beganAt, &r.vacant, &r.node, &r.lastHeartbeat, &r.expiresAt, &r.leaseLength, &r.sessionEndedAt, &r.now)
				byRole[r.role] = r
				return err
			}, args...)
		})
	})
	return byRole, err
}

// endExpiredSessions records the end of the sessions with roles and an expired lease. It
// and a heartbeat lock the same row, so one of them comes first.
func (s *session) endExpiredSessions(ctx context.Context, byRole map[string]*roleRow) error {
	silent := map[int64]struct{}{}
	for _, r := range byRole {
		if r.sessionLive() && r.expiresAt.Int64 <= r.now {
			silent[r.holder.Int64] = struct{}{}
		}
	}
	if len(silent) == 0 {
		return nil
	}
	incarnations := slices.Sorted(maps.Keys(silent))
	gone := map[int64]int64{}
	err := s.backend.db.InTx(ctx, "record expired leases", func(ctx context.Context, on sqldb.Querier) error {
		clear(gone)
		err := sqldb.InLists(s.backend.db.Dialect, s.backend.sql(endExpiredQuery), incarnations, nil, func(query string, args []any) error {
			return sqldb.Exec(ctx, on, query, args...)
		})
		if err != nil {
			return err
		}
		err = sqldb.InLists(s.backend.db.Dialect, s.backend.sql(readEndedQuery), incarnations, nil, func(query string, args []any) error {
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
		return sqldb.Exec(ctx, on, s.backend.sql(announceVacancyQuery))
	})
	if err != nil {
		return err
	}
	for _, r := range byRole {
		if at, ok := gone[r.holder.Int64]; ok && r.holder.Valid {
			r.sessionEndedAt = sql.NullInt64{Int64: at, Valid: true}
		}
	}
	return nil
}

// awaitReleases reads the roles of this session again when no other transaction has their
// rows locked. An unacknowledged commit of releaseUnconfirmed may still be in progress,
// and another session acquires the role after it.
func (s *session) awaitReleases(ctx context.Context, byRole map[string]*roleRow) error {
	var own []string
	for role, r := range byRole {
		if r.holder.Valid && r.holder.Int64 == s.incarnation && !r.endedAt.Valid {
			own = append(own, role)
		}
	}
	if len(own) == 0 {
		return nil
	}
	slices.Sort(own)
	err := s.backend.db.InTx(ctx, "wait for releases", func(ctx context.Context, on sqldb.Querier) error {
		return s.inLists(ctx, on, s.backend.sql(waitForRowsQuery), own)
	})
	if err != nil {
		return err
	}
	settled, err := s.readRoles(ctx, own)
	maps.Copy(byRole, settled)
	return err
}

// releaseUnconfirmed releases possibly acquired roles after an unacknowledged commit,
// unless the engine has requested them again.
func (s *session) releaseUnconfirmed(ctx context.Context) error {
	if len(s.unconfirmed) == 0 {
		return nil
	}
	roles := slices.Sorted(maps.Keys(s.unconfirmed))
	err := s.backend.db.InTx(ctx, "release roles", func(ctx context.Context, on sqldb.Querier) error {
		// The commit may still be in progress and has locked the rows then. After this
		// statement they have their final state.
		err := s.inLists(ctx, on, s.backend.sql(waitForRowsQuery), roles)
		if err != nil {
			return err
		}
		err = sqldb.InLists(s.backend.db.Dialect, s.backend.sql(releaseUnconfirmedQuery), roles, []any{string(history.EndResigned), s.incarnation},
			func(query string, args []any) error { return sqldb.Exec(ctx, on, query, args...) })
		if err != nil {
			return err
		}
		return sqldb.Exec(ctx, on, s.backend.sql(announceVacancyQuery))
	})
	if err == nil {
		clear(s.unconfirmed)
	}
	return err
}
