package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgdial"
)

// fencing ends transactions that keep new terms waiting longer than the fence
// timeout, on a short-lived connection of its own: the session has heartbeats to
// send meanwhile.
type fencing struct {
	session *session
	log     *slog.Logger
	ctx     context.Context // ends with the session
	abort   context.CancelFunc
	group   sync.WaitGroup

	mu      sync.Mutex
	roles   map[string]struct{} // whose terms are waiting
	running bool
}

const (
	// fenceTimeout bounds one round on the third connection.
	fenceTimeout = 10 * time.Second
	// fencePause is the least time between two rounds.
	fencePause = time.Second
)

func (f *fencing) init(s *session) {
	f.session, f.log = s, s.log
	f.ctx, f.abort = context.WithCancel(context.Background())
	f.roles = map[string]struct{}{}
}

// end asks for the end of the transactions that hold the row of a role. It does
// not block.
func (f *fencing) end(role string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.roles[role] = struct{}{}
	if f.running {
		return
	}
	f.running = true
	f.group.Add(1)
	f.session.backend.running.Add(1)
	go f.run()
}

// wait waits for a round in progress; call abort first.
func (f *fencing) wait() { f.group.Wait() }

// take returns the roles to look at, or marks the end of the goroutine.
func (f *fencing) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var roles []string
	for role := range f.roles {
		roles = append(roles, role)
	}
	clear(f.roles)
	f.running = len(roles) > 0
	slices.Sort(roles)
	return roles
}

func (f *fencing) run() {
	defer f.session.backend.running.Done()
	defer f.group.Done()
	for roles := f.take(); len(roles) > 0; roles = f.take() {
		if err := f.round(roles); err != nil && f.ctx.Err() == nil {
			f.log.Error("ending fenced transactions of old terms failed", "roles", roles, "error", err)
		}
		select {
		case <-f.ctx.Done():
		case <-time.After(fencePause):
		}
	}
}

const (
	// What holds the row: the number of a transaction, or of a set of them.
	readLockers = `
SELECT DISTINCT xmax::text FROM {terms} WHERE role = ANY ($1::text[]) AND xmax::text <> '0'`

	readMembers = `
SELECT xid::text FROM pg_get_multixact_members($1::text::xid)`

	// A number could be that of a transaction and that of a set: whoever is
	// ended must also have locked rows of the table. Sessions of nodes never
	// fence anything.
	endLockers = `
SELECT a.pid, coalesce(a.usename::text, ''), coalesce(a.application_name, ''), pg_terminate_backend(a.pid)
FROM pg_locks x
JOIN pg_stat_activity a ON a.pid = x.pid
WHERE x.locktype = 'transactionid'
    AND x.granted
    AND x.transactionid::text = ANY ($1::text[])
    AND x.pid <> pg_backend_pid()
    AND NOT EXISTS (SELECT FROM {nodes} n WHERE n.pid = x.pid AND n.status <> 'dead')
    AND EXISTS (
        SELECT
        FROM pg_locks r
        WHERE r.pid = x.pid
            AND r.locktype = 'relation'
            AND r.database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND r.relation = {terms:regclass}
            AND r.mode = 'RowShareLock'
    )`

	// Prepared transactions have no backend that could be ended.
	readPrepared = `
SELECT gid, owner::text, prepared FROM pg_prepared_xacts WHERE transaction::text = ANY ($1::text[])`
)

// round ends every transaction that holds the row of one of the roles, not only
// the one that pg_blocking_pids would show.
func (f *fencing) round(roles []string) error {
	ctx, cancel := context.WithTimeout(f.ctx, fenceTimeout)
	defer cancel()
	b := f.session.backend
	conn, err := b.dial(ctx, pgdial.Question, f.session.opening.Node.Name+" fence", nil)
	if err != nil {
		return err
	}
	defer discard(conn)
	lockers, err := texts(ctx, conn, b.names.sql(readLockers), roles)
	if err != nil {
		return fmt.Errorf("read lockers: %w", err)
	}
	transactions := slices.Clone(lockers)
	for _, locker := range lockers {
		// Fails where the number is that of a transaction.
		if members, err := texts(ctx, conn, readMembers, locker); err == nil {
			transactions = append(transactions, members...)
		}
	}
	if err := f.endAll(ctx, conn, roles, transactions); err != nil {
		return err
	}
	return f.namePrepared(ctx, conn, roles, transactions)
}

func (f *fencing) endAll(ctx context.Context, conn *pgx.Conn, roles, transactions []string) error {
	rows, err := conn.Query(ctx, f.session.backend.names.sql(endLockers), transactions)
	if err != nil {
		return fmt.Errorf("end lockers: %w", err)
	}
	var (
		pid        int32
		user, name string
		ended      bool
	)
	_, err = pgx.ForEachRow(rows, []any{&pid, &user, &name, &ended}, func() error {
		f.log.Warn("a fenced transaction of an old term was ended: it kept the next term waiting",
			"roles", roles, "pid", pid, "user", user, "application", name, "signalled", ended)
		return nil
	})
	if hasCode(err, codeInsufficientPrivilege) {
		return fmt.Errorf("this user may not end the transaction: GRANT its user's role, or pg_signal_backend, TO %s: %w",
			pgx.Identifier{conn.Config().User}.Sanitize(), err)
	}
	if err != nil {
		return fmt.Errorf("end lockers: %w", err)
	}
	return nil
}

func (f *fencing) namePrepared(ctx context.Context, conn *pgx.Conn, roles, transactions []string) error {
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
			"roles", roles, "gid", gid, "owner", owner, "prepared", prepared, "advice", "ROLLBACK PREPARED "+literal(gid))
		return nil
	})
	return err
}

// texts reads a column of texts.
func texts(ctx context.Context, conn *pgx.Conn, sql string, args ...any) ([]string, error) {
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
