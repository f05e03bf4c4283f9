package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/postgres/internal/link"
)

// blockedTerm is a term whose begin transactions prevented for longer than the fence
// timeout.
type blockedTerm struct {
	role string
	term int64
	by   string // the transactions
}

// recordBlockers stores what kept a term from beginning. The application may lock the row
// again, so the wait for it is short.
const recordBlockers = `UPDATE {terms} SET blocked_by = $3 WHERE role = $1 AND term = $2`

// named reports whether it is known what holds the rows of all of these roles. After a
// round that terminated a transaction, others hold them that waited behind it: the role
// should not wait until they are named, too.
func (f *blockerTerminator) named(roles []string, last []int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, role := range roles {
		if seen, found := f.seen[role]; f.stale || !found || seen.term != last[i] {
			return false
		}
	}
	return true
}

// renew records whether the next round names the transactions again.
func (f *blockerTerminator) renew(stale bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stale = stale
}

// name remembers what holds the rows of roles.
func (f *blockerTerminator) name(ctx context.Context, conn *pgx.Conn, roles []string, last []int64) {
	found, err := f.session.backend.records.ReadBlockersOf(ctx, conn, f.session.space, roles, []string{conn.Config().User})
	if err != nil {
		f.log.Warn("the transactions that hold the rows of roles are not known", "roles", roles, "error", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, role := range roles {
		if blockers := found[role]; len(blockers) > 0 {
			f.seen[role] = blockedTerm{role, last[i], textOf(blockers)}
		}
	}
}

// textOf names at most three transactions.
func textOf(blockers []history.Blocker) string {
	const most = 3
	var all []string
	for _, b := range blockers[:min(most, len(blockers))] {
		all = append(all, b.String())
	}
	if more := len(blockers) - most; more > 0 {
		all = append(all, fmt.Sprintf("%d more", more))
	}
	return strings.Join(all, ", ")
}

// begun requests that what kept a role's term from beginning is recorded with the term,
// if the terminator saw it. It does not block.
func (f *blockerTerminator) begun(role string, previous, term int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen, found := f.seen[role]
	delete(f.seen, role)
	if found && seen.term == previous {
		f.records = append(f.records, blockedTerm{role, term, seen.by})
		f.startLocked()
	}
}

// record stores what kept terms from beginning.
func (f *blockerTerminator) record(records []blockedTerm) error {
	ctx, cancel := context.WithTimeout(f.ctx, fenceTimeout)
	defer cancel()
	conn, err := f.connect(ctx)
	if err != nil {
		return err
	}
	defer link.Discard(conn)
	if err := limitLockWait(ctx, conn, waitTimeout); err != nil {
		return err
	}
	slices.SortFunc(records, func(a, b blockedTerm) int { return strings.Compare(a.role, b.role) })
	for _, r := range records {
		if _, err := conn.Exec(ctx, f.session.backend.names.SQL(recordBlockers), r.role, r.term, r.by); err != nil {
			return fmt.Errorf("%s: %w", r.role, err)
		}
	}
	return nil
}

// A row that was locked in a savepoint contains the savepoint's number. Once the
// savepoint is released, SQL offers no way from that number to the transaction, but
// a backend that waits for the row waits for the transaction.

const (
	// The wait needs the same lock as the begin of the next term, and releases it
	// immediately.
	waitForRows = `
SELECT
FROM {terms} t
JOIN unnest($1::text[], $2::bigint[]) AS b(role, term) ON t.role = b.role AND t.term = b.term
ORDER BY t.role
FOR UPDATE OF t`

	// A prepared transaction blocks as the process 0.
	readBlockers = `
SELECT
    pg_blocking_pids($1::int),
    coalesce((SELECT l.transactionid::text FROM pg_locks l WHERE l.pid = $1 AND l.locktype = 'transactionid' AND NOT l.granted), '')`

	// waitTimeout bounds the wait, and waitTick is the interval of checks.
	waitTimeout = 500 * time.Millisecond
	waitTick    = 10 * time.Millisecond
)

// blockers waits for the rows of roles on another connection and returns the
// transactions that it waits for.
func (f *blockerTerminator) blockers(ctx context.Context, conn *pgx.Conn, roles []string, last []int64) (found culprits, err error) {
	waiter, err := f.connect(ctx)
	if err != nil {
		return found, err
	}
	defer link.Discard(waiter)
	if err := limitLockWait(ctx, waiter, waitTimeout); err != nil {
		return found, err
	}
	ended := make(chan struct{})
	go func() { // ends when it is canceled, within waitTimeout, or with ctx
		defer close(ended)
		_, _ = waiter.Exec(ctx, f.session.backend.names.SQL(waitForRows), roles, last) // it fails if it waits too long, which blockers expects
	}()
	defer func() {
		_, _ = conn.Exec(ctx, "SELECT pg_cancel_backend($1)", int32(waiter.PgConn().PID())) // if it fails, the wait ends within waitTimeout
		<-ended
	}()
	tick := time.NewTicker(waitTick)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return found, nil
		case <-tick.C:
		}
		var transaction string
		err := conn.QueryRow(ctx, readBlockers, int32(waiter.PgConn().PID())).Scan(&found.pids, &transaction)
		if err != nil {
			return found, err
		}
		if transaction != "" {
			found.transactions = []string{transaction}
		}
		found.pids = slices.DeleteFunc(found.pids, func(pid int32) bool { return pid == 0 })
		if len(found.pids) > 0 || transaction != "" {
			return found, nil
		}
	}
}

// limitLockWait bounds each wait for a lock on a connection.
func limitLockWait(ctx context.Context, conn *pgx.Conn, limit time.Duration) error {
	_, err := conn.Exec(ctx, `SELECT set_config('lock_timeout', $1, false)`, link.Milliseconds(limit))
	return err
}
