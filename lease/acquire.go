package lease

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// serverState describes the server in use by the nodes.
type serverState struct {
	name         string
	since, now   int64
	longestLease int64 // of the leases of sessions that began before
}

// acquireRoles acquires available roles. Their terms begin, or the roles are reserved for
// this session until they may begin. If another transaction has locked the row, the role
// is pending without being reserved. Such a transaction is fenced by the last term or
// acquires the role too.
func (s *session) acquireRoles(ctx context.Context, available []*roleRow) (map[string]tenure.AcquireResult, error) {
	slices.SortFunc(available, func(a, b *roleRow) int { return compareRoles(a.role, b.role) })
	roles := make([]string, len(available))
	for i, t := range available {
		roles[i] = t.role
	}
	var (
		results map[string]tenure.AcquireResult
		locked  map[string]*roleRow
	)
	err := s.backend.db.InTxThen(ctx, "acquire roles", func(ctx context.Context, on sqldb.Querier) error {
		results = make(map[string]tenure.AcquireResult, len(available))
		if err := s.checkLive(ctx, on); err != nil {
			return err
		}
		at, err := s.detectServerChange(ctx, on)
		if err != nil {
			return err
		}
		if locked, err = s.lockRoles(ctx, on, roles); err != nil {
			return err
		}
		begin, later := s.sortByReadiness(available, locked, at, results)
		if err := s.closeTerms(ctx, on, available, locked); err != nil {
			return err
		}
		for _, ready := range slices.Sorted(maps.Keys(later)) {
			if err := s.inLists(ctx, on, s.backend.sql(reserveQuery), later[ready], s.incarnation, ready); err != nil {
				return err
			}
		}
		if len(begin) == 0 {
			return nil
		}
		return s.begin(ctx, on, begin, locked, at, results)
	}, s.sameFile)
	for _, t := range available {
		s.lastTerms[t.role] = t.term
		// If the row has changed since it was read, or cannot be locked, an earlier,
		// unacknowledged commit may have begun a term.
		if err != nil {
			s.unconfirmed[t.role] = struct{}{}
		} else if now, ok := locked[t.role]; ok && now.sameTerm(t) {
			delete(s.unconfirmed, t.role)
		}
	}
	if err != nil {
		return nil, err
	}
	s.closeSkipped(available, locked)
	return results, nil
}

// sortByReadiness returns in begin the roles whose terms may begin now, and in later the
// roles of later terms, by the time of the begin. It adds the results of all roles except
// begin.
func (s *session) sortByReadiness(
	available []*roleRow, locked map[string]*roleRow, at serverState, results map[string]tenure.AcquireResult,
) (begin []string, later map[int64][]string) {
	later = map[int64][]string{}
	for _, t := range available {
		now, ok := locked[t.role]
		switch {
		case !ok:
			results[t.role] = tenure.AcquireResult{Outcome: tenure.OutcomePending, RetryIn: 5 * time.Millisecond, Fenced: true}
			continue
		case !now.sameTerm(t) && now.holder.Valid && now.holder.Int64 == s.incarnation:
			// An earlier commit has begun the term: the next attempt finds it.
			results[t.role] = tenure.AcquireResult{Outcome: tenure.OutcomePending, RetryIn: time.Millisecond}
			continue
		case !now.sameTerm(t):
			results[t.role] = tenure.AcquireResult{Outcome: tenure.OutcomeHeld} // another session was faster, or the key has changed
			continue
		}
		if ready := s.readyAt(t, at); ready > at.now {
			later[ready] = append(later[ready], t.role)
			results[t.role] = tenure.AcquireResult{Outcome: tenure.OutcomePending, RetryIn: microseconds(ready - at.now)}
		} else {
			begin = append(begin, t.role)
		}
	}
	return begin, later
}

// checkLive returns an error if this session has ended: other sessions could acquire
// its roles immediately.
func (s *session) checkLive(ctx context.Context, on sqldb.Querier) error {
	live := 0
	err := sqldb.ForEach(ctx, on, s.backend.sql(lockOwnSessionQuery), func(rows *sql.Rows) error { return rows.Scan(&live) }, s.incarnation, s.options.Node.ID.String())
	if err == nil && live == 0 {
		err = errSessionEnded()
	}
	return err
}

// inLists runs a statement to change the rows of roles.
func (s *session) inLists(ctx context.Context, on sqldb.Querier, statement string, roles []string, before ...any) error {
	return sqldb.InLists(s.backend.db.Dialect, statement, roles, before, func(statement string, args []any) error {
		return sqldb.Exec(ctx, on, statement, args...)
	})
}

// detectServerChange reads the identity of this server and records a change. After a
// change no term begins for one lease, because this server may lack acknowledged
// heartbeats and terms of the last one. A change in the future was recorded while the
// clock was ahead, and counts from now.
func (s *session) detectServerChange(ctx context.Context, on sqldb.Querier) (serverState, error) {
	at, present, err := s.readServer(ctx, on)
	if err != nil || at.name == present && at.since <= at.now {
		return at, err
	}
	if s.pinned && at.name != present {
		return at, errSessionEnded()
	}
	if at.name == present {
		s.log.Warn("the database's clock was ahead when the server changed: no term begins for the longest lease from now")
	} else {
		s.log.Warn("the database server has changed: no term begins for the longest lease", "server", present, "before", at.name)
	}
	if err := sqldb.Exec(ctx, on, s.backend.sql(setServerQuery), present, at.name); err != nil {
		return at, err
	}
	at, _, err = s.readServer(ctx, on)
	return at, err
}

// readServer reads the server in use by the nodes, and the name of this server.
func (s *session) readServer(ctx context.Context, on sqldb.Querier) (at serverState, present string, err error) {
	err = sqldb.ForEach(ctx, on, s.backend.sql(readServerQuery), func(rows *sql.Rows) error {
		return rows.Scan(&at.name, &at.since, &present, &at.now, &at.longestLease)
	})
	return at, present, err
}

// longestWait is how long the term of a role may have to wait, as far as this session
// knows.
func (s *session) longestWait() time.Duration {
	timing := s.options.Timing
	return max(timing.Lease, timing.FailoverWait, timing.Settle)
}

// waitIsOver reports whether the wait before a term of this session is over, or was
// computed while the clock was ahead: see readyAt.
func (s *session) waitIsOver(left time.Duration) bool { return left <= 0 || left > s.longestWait() }

// readyAt returns when the term of a role may begin, by the database's clock. A time
// beyond the longest wait was written while the clock was ahead.
func (s *session) readyAt(t *roleRow, at serverState) int64 {
	timing := s.options.Timing
	ready := min(t.readyAt.Int64, at.now+max(s.longestWait().Microseconds(), at.longestLease))
	if t.endedUncleanly() && timing.Settle > 0 {
		ready = max(ready, at.now+timing.Settle.Microseconds())
	}
	if at.since > 0 {
		// The old leader can have a longer lease than this node, and its heartbeats and
		// its term may be missing here, and with the term how it ended.
		ready = max(ready, at.since+max(s.longestWait().Microseconds(), at.longestLease))
	}
	return ready
}

// lockRoles locks the rows of roles, except rows locked by another transaction.
func (s *session) lockRoles(ctx context.Context, on sqldb.Querier, roles []string) (map[string]*roleRow, error) {
	locked := make(map[string]*roleRow, len(roles))
	err := sqldb.InLists(s.backend.db.Dialect, s.backend.sql(lockRolesQuery), roles, nil, func(statement string, args []any) error {
		return sqldb.ForEach(ctx, on, statement, func(rows *sql.Rows) error {
			t := &roleRow{}
			err := rows.Scan(&t.role, &t.key, &t.term, &t.holder)
			locked[t.role] = t
			return err
		}, args...)
	})
	return locked, err
}

// closeTerms records the end of the terms of ended sessions.
func (s *session) closeTerms(ctx context.Context, on sqldb.Querier, available []*roleRow, locked map[string]*roleRow) error {
	type end struct{ holder, at, seen int64 }
	ends := map[end][]string{}
	for _, t := range available {
		if _, ok := locked[t.role]; ok && t.leftOpen() {
			e := end{t.holder.Int64, termEnd(t), lastSeen(t)}
			ends[e] = append(ends[e], t.role)
		}
	}
	for e, roles := range ends {
		err := s.inLists(ctx, on, s.backend.sql(closeTermsQuery), roles, e.at, string(history.EndLeaseExpired), e.seen, e.holder)
		if err != nil {
			return err
		}
	}
	return nil
}

// termEnd returns when the term of a role ended, after the end of its session.
func termEnd(t *roleRow) int64 {
	if t.sessionEndedAt.Valid {
		return t.sessionEndedAt.Int64
	}
	return t.now // the row of the session has been removed
}

// lastSeen returns when the leader of a role last sent a heartbeat in its term, or -1
// if the row of its session has been removed.
func lastSeen(t *roleRow) int64 {
	if !t.lastHeartbeat.Valid {
		return -1
	}
	return max(t.lastHeartbeat.Int64, t.beganAt.Int64)
}

// begin begins the terms of roles whose rows are locked.
func (s *session) begin(
	ctx context.Context, on sqldb.Querier, roles []string, locked map[string]*roleRow, at serverState, results map[string]tenure.AcquireResult,
) error {
	b, node := s.backend, s.options.Node
	if err := s.inLists(ctx, on, b.sql(archiveTermsQuery), roles); err != nil {
		return err
	}
	led := map[string][]string{} // roles by the names of their leaders
	for _, role := range roles {
		name := cmp.Or(s.leaderNames[role], node.Name)
		led[name] = append(led[name], role)
	}
	for name, some := range led {
		if err := s.inLists(ctx, on, b.sql(beginQuery), some, s.incarnation, node.ID.String(), name, node.Host, at.name); err != nil {
			return err
		}
	}
	begun := 0
	err := sqldb.InLists(b.db.Dialect, b.sql(readBegunQuery), roles, []any{s.incarnation}, func(statement string, args []any) error {
		return sqldb.ForEach(ctx, on, statement, func(rows *sql.Rows) error {
			var (
				role          string
				term, beganAt int64
				vacant        sql.NullInt64
			)
			err := rows.Scan(&role, &term, &beganAt, &vacant)
			results[role] = grantedResult(term, locked[role].term, beganAt, vacant)
			begun++
			return err
		}, args...)
	})
	if err == nil && begun != len(roles) {
		err = errors.New("terms did not begin although their rows were locked")
	}
	if err != nil {
		return err
	}
	return sqldb.Exec(ctx, on, b.sql(announceTermQuery))
}

// closeSkipped records the end of terms although other transactions have locked their
// rows. From then on no transaction can be fenced by these terms, so overlapping ones
// cannot delay the next term forever. On PostgreSQL it does not wait for the transactions.
// On MySQL it waits for the holders of the lock and precedes later ones. Therefore it runs
// in goroutines, which end after FenceTimeout; Backend.Close waits for them.
func (s *session) closeSkipped(available []*roleRow, locked map[string]*roleRow) {
	if s.backend.db.Dialect == sqldb.SQLite {
		return // no row is skipped: a transaction locks the whole file
	}
	for _, t := range available {
		if _, ok := locked[t.role]; ok || !t.leftOpen() || !s.tryStartClosing(t.role) {
			continue
		}
		s.backend.running.Go(func() {
			defer s.finishClosing(t.role)
			ctx, cancel := s.withTimeout(s.options.Timing.FenceTimeout)
			defer cancel()
			err := s.backend.write(ctx, "close a term", func(ctx context.Context, on sqldb.Querier) error {
				return sqldb.Exec(ctx, on, s.backend.sql(closeSkippedQueries[s.backend.db.Dialect]), termEnd(t), string(history.EndLeaseExpired), lastSeen(t), t.holder.Int64, t.role)
			})
			if err != nil && s.ctx.Err() == nil {
				s.log.Warn("transactions of the last term delay the next one", "role", t.role, "error", err)
			}
		})
	}
}

// maxClosing is how many terms closeSkipped closes at the same time, each on a
// connection of the pool.
const maxClosing = 4

func (s *session) tryStartClosing(role string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, already := s.closing[role]; already || len(s.closing) == maxClosing {
		return false
	}
	s.closing[role] = struct{}{}
	return true
}

func (s *session) finishClosing(role string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.closing, role)
}
