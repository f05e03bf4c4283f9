package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgdial"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/internal/wakeup"
	"github.com/exactly-one/tenure/postgres/internal/install"
	"github.com/exactly-one/tenure/postgres/internal/link"
	"github.com/exactly-one/tenure/postgres/internal/records"
)

// blockerTerminator terminates transactions if they delay new terms for longer than the
// fence timeout. It uses a separate, short-lived connection, because the session has to
// send heartbeats at the same time.
type blockerTerminator struct {
	session *session
	log     *slog.Logger
	ctx     context.Context // ends with the session
	abort   context.CancelFunc
	group   sync.WaitGroup

	mu      sync.Mutex
	roles   map[string]int64       // with waiting terms, and the numbers of their last terms
	seen    map[string]blockedTerm // the holders of their rows, with the numbers of their last terms
	records []blockedTerm          // terms begun since
	stale   bool                   // the transactions in seen may have ended without a termination
	running bool
}

const (
	// fenceTimeout bounds one round on the third connection.
	fenceTimeout = 10 * time.Second
	// fencePause is the minimum time between two rounds. fenceAgain is the time after a
	// round with a termination: another transaction may have waited behind the terminated
	// one.
	fencePause = time.Second
	fenceAgain = 50 * time.Millisecond
)

func (f *blockerTerminator) init(s *session) {
	f.session, f.log = s, s.log
	f.ctx, f.abort = context.WithCancel(context.Background())
	f.roles, f.seen = map[string]int64{}, map[string]blockedTerm{}
}

// end requests the termination of the transactions in the way of a role's next term. last
// is the number of its last term. Once the next term has begun, the transactions are its
// leader's, and stay. It does not block.
func (f *blockerTerminator) end(role string, last int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.roles[role] = last
	f.startLocked()
}

func (f *blockerTerminator) startLocked() {
	if f.running {
		return
	}
	f.running = true
	f.group.Add(1)
	f.session.backend.running.Add(1)
	go f.run() // exits when nothing is left or f.ctx ends; wait waits for it
}

// wait waits for a round in progress; call abort first.
func (f *blockerTerminator) wait() { f.group.Wait() }

// take returns the roles to examine with the numbers of their last terms, and the terms
// to record. Without any, it records the end of the goroutine.
func (f *blockerTerminator) take() (roles []string, last []int64, begun []blockedTerm) {
	f.mu.Lock()
	defer f.mu.Unlock()
	roles = slices.Sorted(maps.Keys(f.roles))
	for _, role := range roles {
		last = append(last, f.roles[role])
	}
	clear(f.roles)
	begun, f.records = f.records, nil
	f.running = len(roles)+len(begun) > 0 && f.ctx.Err() == nil
	return roles, last, begun
}

func (f *blockerTerminator) run() {
	defer f.session.backend.running.Done()
	defer f.group.Done()
	for {
		roles, last, begun := f.take()
		if len(begun) > 0 {
			if err := f.record(begun); err != nil && f.ctx.Err() == nil {
				f.log.Warn("recording which transactions kept terms from beginning failed", "error", err)
			}
		}
		switch {
		case len(roles)+len(begun) == 0 || f.ctx.Err() != nil:
			return
		case len(roles) == 0:
			continue
		}
		ended, err := f.round(roles, last)
		f.renew(ended == 0)
		if err != nil && f.ctx.Err() == nil {
			f.log.Error("terminating the transactions that hold the rows of roles failed", "roles", roles, "error", err)
		}
		pause := fencePause
		if ended > 0 {
			pause = fenceAgain
		}
		wakeup.Sleep(f.ctx, pause)
	}
}

const (
	// The holder of the row: the number of a transaction, or of a set of them.
	readLockers = `
SELECT DISTINCT t.xmax::text
FROM {terms} t
JOIN unnest($1::text[], $2::bigint[]) AS b(role, term) ON t.role = b.role AND t.term = b.term
WHERE t.xmax::text <> '0'`

	// Whatever the lock mode of the row, its holder is terminated: the privileges for
	// fencing also allow FOR UPDATE and an UPDATE of the column fence. The same number
	// can mean a transaction or a set of transactions. So a backend is only terminated if
	// it has also locked the table in a mode needed to lock or write rows. The sessions
	// of nodes hold a node lock, and are left to the reaper.
	endLockers = `
WITH locks AS MATERIALIZED (
    SELECT * FROM pg_locks WHERE granted AND pid <> pg_backend_pid()
), here AS MATERIALIZED (
    SELECT oid FROM pg_database WHERE datname = current_database()
)
SELECT a.pid, coalesce(a.usename::text, ''), coalesce(a.application_name, ''), m.may, m.may AND pg_terminate_backend(a.pid)
FROM pg_stat_activity a
JOIN pg_roles u ON u.oid = a.usesysid
CROSS JOIN LATERAL (
    SELECT pg_has_role(a.usesysid, 'USAGE') OR NOT u.rolsuper AND pg_has_role('pg_signal_backend', 'USAGE') AS may
    OFFSET 0
) m
WHERE (
        a.pid = ANY ($3::int[])
        OR a.pid IN (SELECT x.pid FROM locks x WHERE x.locktype = 'transactionid' AND x.transactionid::text = ANY ($1::text[]))
    )
    AND EXISTS (
        SELECT
        FROM locks r, here
        WHERE r.pid = a.pid
            AND r.locktype = 'relation'
            AND r.database = here.oid
            AND r.relation = {terms:regclass}
            AND r.mode <> 'AccessShareLock'
    )
    AND NOT EXISTS (
        SELECT
        FROM locks n, here
        WHERE n.pid = a.pid
            AND n.locktype = 'advisory'
            AND n.database = here.oid
            AND n.classid = $2::int::oid
            AND n.objsubid = 2
            AND n.mode = 'ExclusiveLock'
    )`

	// Prepared transactions have no backend to terminate.
	readPrepared = `
SELECT gid, owner::text, prepared FROM pg_prepared_xacts WHERE transaction::text = ANY ($1::text[])`
)

// round terminates every transaction with a lock on the row of one of the roles, not only
// the one pg_blocking_pids would show, and returns their number. It leaves out roles that
// have had another term since the last ones.
func (f *blockerTerminator) round(roles []string, last []int64) (ended int, err error) {
	ctx, cancel := context.WithTimeout(f.ctx, fenceTimeout)
	defer cancel()
	conn, err := f.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer link.Discard(conn)
	if !f.named(roles, last) {
		f.name(ctx, conn, roles, last)
	}
	found, err := f.lockers(ctx, conn, roles, last)
	if err != nil {
		return 0, fmt.Errorf("read the blocking transactions: %w", err)
	}
	ended, err = f.endAll(ctx, conn, roles, found)
	if ended > 0 || err != nil {
		return ended, err
	}
	if found, err = f.blockers(ctx, conn, roles, last); err != nil {
		return 0, fmt.Errorf("wait for the rows: %w", err)
	}
	return f.endAll(ctx, conn, roles, found)
}

// connect opens a connection to the server of the session: on another server,
// transactions of the valid term there hold the same rows.
func (f *blockerTerminator) connect(ctx context.Context) (*pgx.Conn, error) {
	conn, err := f.session.backend.connect.Dial(ctx, pgdial.Question, f.session.opening.Node.Name+" fence", nil)
	if err != nil {
		return nil, err
	}
	if err := f.session.checkServer(ctx, conn); err != nil {
		link.Discard(conn)
		return nil, err
	}
	return conn, nil
}

// culprits are the transactions and backends in the way.
type culprits struct {
	transactions []string
	pids         []int32
}

// lockers reads the transactions with a lock on the rows of roles.
func (f *blockerTerminator) lockers(ctx context.Context, conn *pgx.Conn, roles []string, last []int64) (culprits, error) {
	lockers, err := link.Texts(ctx, conn, f.session.backend.names.SQL(readLockers), roles, last)
	found := culprits{transactions: slices.Clone(lockers)}
	for _, locker := range lockers {
		if members, err := link.Texts(ctx, conn, records.ReadMembers, locker); err == nil {
			found.transactions = append(found.transactions, members...)
		}
	}
	return found, err
}

// endAll terminates the backends among the culprits and logs the prepared
// transactions.
func (f *blockerTerminator) endAll(ctx context.Context, conn *pgx.Conn, roles []string, found culprits) (ended int, err error) {
	rows, err := conn.Query(ctx, f.session.backend.names.SQL(endLockers), found.transactions, f.session.space, found.pids)
	if err != nil {
		return ended, fmt.Errorf("terminate the blocking transactions: %w", err)
	}
	var (
		pid           int32
		user, name    string
		may, signaled bool
	)
	_, err = pgx.ForEachRow(rows, []any{&pid, &user, &name, &may, &signaled}, func() error {
		if !may {
			f.log.Error("a transaction keeps the next term waiting, and this node's user may not terminate it",
				"roles", roles, "pid", pid, "user", user, "application", name,
				"advice", install.GrantTermination(user, conn.Config().User, f.session.server.Version))
			return nil
		}
		f.log.Warn("a transaction that kept the next term waiting was terminated",
			"roles", roles, "pid", pid, "user", user, "application", name, "signaled", signaled)
		if signaled {
			ended++
		}
		return nil
	})
	if err != nil {
		return ended, fmt.Errorf("terminate the blocking transactions: %w", err)
	}
	return ended, f.namePrepared(ctx, conn, roles, found.transactions)
}

func (f *blockerTerminator) namePrepared(ctx context.Context, conn *pgx.Conn, roles, transactions []string) error {
	rows, err := conn.Query(ctx, readPrepared, transactions)
	if err != nil {
		return fmt.Errorf("read prepared transactions: %w", err)
	}
	var (
		gid, owner string
		prepared   time.Time
	)
	_, err = pgx.ForEachRow(rows, []any{&gid, &owner, &prepared}, func() error {
		f.log.Error("a prepared transaction of an old term keeps the next term waiting; only its owner can end it",
			"roles", roles, "gid", gid, "owner", owner, "prepared", prepared, "advice", "ROLLBACK PREPARED "+schema.Literal(gid))
		return nil
	})
	return err
}

// blockedTerm is a term delayed by transactions for longer than the fence timeout.
type blockedTerm struct {
	role string
	term int64
	by   string // the transactions
}

// recordBlockers stores the transactions in the way of a term. The application may lock
// the row again, so the wait for it is short.
const recordBlockers = `UPDATE {terms} SET blocked_by = $3 WHERE role = $1 AND term = $2`

// named reports whether the holders of the rows of all these roles are known. After a
// round with a termination, transactions from the queue behind it hold the rows. The role
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

// name remembers the holders of the rows of roles.
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

// begun requests to record the blockers of a role's term with the term, if the terminator
// saw any. It does not block.
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

// record stores the blockers of terms.
func (f *blockerTerminator) record(terms []blockedTerm) error {
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
	slices.SortFunc(terms, func(a, b blockedTerm) int { return strings.Compare(a.role, b.role) })
	for _, r := range terms {
		if _, err := conn.Exec(ctx, f.session.backend.names.SQL(recordBlockers), r.role, r.term, r.by); err != nil {
			return fmt.Errorf("%s: %w", r.role, err)
		}
	}
	return nil
}

// A row locked in a savepoint contains the savepoint's number. Once the savepoint is
// released, SQL offers no way from this number to the transaction. But a backend that
// waits for the row waits for the transaction.

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

// blockers waits for the rows of roles on another connection and returns the transactions
// in its way.
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
