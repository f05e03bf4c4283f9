package install

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/installation"
	"github.com/exactly-one/tenure/internal/openlimit"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/internal/wakeup"
	"github.com/exactly-one/tenure/postgres/internal/link"
)

// Lock keys, rows and term numbers protect only within one installation. So every session
// holds the lock of the installation, shared, from before it reads the installation's id
// until the session ends. To create or remove an installation, a program holds the lock
// exclusively. The key depends on database, schema and prefix alone: after DROP SCHEMA, a
// session of the removed installation still holds it.
//
// No session waits in the queue for this lock; each one retries: a waiting exclusive lock
// would keep new sessions out.

const (
	tryInstallation       = `SELECT pg_catalog.pg_try_advisory_lock($1::int, $2::int)`
	tryInstallationShared = `SELECT pg_catalog.pg_try_advisory_lock_shared($1::int, $2::int)`
	tryInstallationInTx   = `SELECT pg_catalog.pg_try_advisory_xact_lock($1::int, $2::int)`
	// Without tables, the lock is left to the session to create them.
	tryExisting           = `SELECT pg_catalog.to_regclass($3) IS NOT NULL AND pg_catalog.pg_try_advisory_lock_shared($1::int, $2::int)`
	endInstallation       = `SELECT pg_catalog.pg_advisory_unlock($1::int, $2::int)`
	endInstallationShared = `SELECT pg_catalog.pg_advisory_unlock_shared($1::int, $2::int)`
)

// How long to keep trying to acquire the lock, and the pause between two attempts.
// Creating the tables takes creationTrips round trips. They can be long.
const (
	installationWait  = 3 * time.Second
	installationPause = 20 * time.Millisecond
	creationTrips     = 60
)

// LockKey is the key of the lock.
func (i *Installation) LockKey() tenure.LockKey {
	first, second := installation.LockKey(i.Names.Schema, i.Names.Prefix)
	return tenure.LockKey{Key: int64(first), Key2: second, Pair: true}
}

// EnterCall acquires the lock, shared, for an opening, if there are tables.
func (i *Installation) EnterCall() link.Call {
	first, second := installation.LockKey(i.Names.Schema, i.Names.Prefix)
	return link.Call{SQL: tryExisting, Args: []any{first, second, i.Names.SQL("{migrations}")}}
}

// Entered reports whether an opening has acquired the lock. If not, Enter finds the cause
// again.
func (i *Installation) Entered(ctx context.Context, a *link.Ahead) bool {
	c := i.EnterCall()
	var entered bool
	err := a.QueryRow(ctx, c.SQL, c.Args...).Scan(&entered)
	return err == nil && entered
}

// CompleteCalls are the statements of completeSchema if the schema is complete.
func (i *Installation) CompleteCalls() []link.Call {
	exist, args, read := i.Schema.VersionsQueries()
	return []link.Call{
		{SQL: exist, Args: args},
		{SQL: read},
		{SQL: tableExists, Args: []any{i.Names.SQL("{installation}")}},
		{SQL: i.Names.SQL(installation.ReadMode)},
	}
}

// Stay is Enter on an already entered connection.
func (i *Installation) Stay(ctx context.Context, a *link.Ahead, migrate Migrator) (schema.Versions, error) {
	versions, there, err := i.completeSchema(ctx, a, migrate)
	if err != nil || there {
		return versions, err
	}
	a.Forget()
	if _, err := i.tryLock(ctx, a.Conn, endInstallationShared); err != nil {
		return nil, err
	}
	return i.Enter(ctx, a.Conn, migrate, nil)
}

// Enter acquires the lock, shared. On return the schema exists and is complete. Unless
// migrate is nil, it creates the schema or brings it up to date. It returns the versions
// of the features already there. extend, if it is not nil, is called with how long the
// wait for another session can take.
func (i *Installation) Enter(ctx context.Context, conn *pgx.Conn, migrate Migrator, extend func(time.Duration)) (schema.Versions, error) {
	began, deadline := time.Now(), time.Time{}
	for {
		version, err := i.ReadVersion(ctx, conn)
		if err != nil {
			return nil, err
		}
		if deadline.IsZero() {
			wait := max(installationWait, min(creationTrips*time.Since(began), time.Minute))
			deadline = began.Add(wait)
			if extend != nil {
				extend(wait + openlimit.Session.Least)
			}
		}
		if version == 0 {
			if created, err := i.createMissing(ctx, conn, migrate); err != nil || created {
				return nil, err
			}
		}
		entered, err := i.tryLock(ctx, conn, tryInstallationShared)
		if err != nil {
			return nil, err
		}
		if entered {
			versions, there, err := i.completeSchema(ctx, &link.Ahead{Conn: conn}, migrate)
			if err != nil || there {
				return versions, err
			}
			if _, err := i.tryLock(ctx, conn, endInstallationShared); err != nil {
				return nil, err
			}
		}
		if time.Now().After(deadline) {
			return nil, i.inUse(ctx, conn, "create the schema", nil)
		}
		if err := pauseForInstallation(ctx); err != nil {
			return nil, err
		}
	}
}

// completeSchema checks the schema while the lock is held shared, and brings it up
// to date if migrate is set. It returns false if there is no schema and migrate is
// set.
func (i *Installation) completeSchema(ctx context.Context, a *link.Ahead, migrate Migrator) (versions schema.Versions, there bool, err error) {
	versions, err = i.UsableVersions(ctx, a)
	version := versions[schema.Core].Present
	if err != nil {
		return nil, false, err
	}
	if version == 0 && migrate != nil {
		return nil, false, nil
	}
	if err := i.CheckMode(ctx, a); err != nil {
		return nil, false, err
	}
	switch {
	case version >= i.Core.Newest():
		return versions, true, nil
	case migrate == nil:
		return nil, false, fmt.Errorf("%w: it has version %d and version %d is needed: run the migrations", dberr.ErrSchema, version, i.Core.Newest())
	}
	a.Forget()
	if err := migrate(ctx, a.Conn); err != nil {
		return nil, false, err
	}
	return versions, true, i.CheckMode(ctx, a.Conn)
}

// createMissing creates a schema without a version, if migrate is set.
func (i *Installation) createMissing(ctx context.Context, conn *pgx.Conn, migrate Migrator) (created bool, err error) {
	err = i.RefuseRemains(ctx, conn)
	switch {
	case errors.Is(err, ErrNoRows) && migrate != nil:
		return false, i.fillTables(ctx, conn)
	case err != nil || migrate == nil:
		return false, err
	}
	return i.createInstallation(ctx, conn, migrate)
}

// createInstallation creates a missing schema under the exclusive lock, and keeps
// the lock shared. It returns false if another session holds the lock.
func (i *Installation) createInstallation(ctx context.Context, conn *pgx.Conn, migrate Migrator) (created bool, err error) {
	if locked, err := i.tryLock(ctx, conn, tryInstallation); err != nil || !locked {
		return false, err
	}
	if err := i.CheckMode(ctx, conn); err != nil {
		return false, err
	}
	leases, err := i.livingLeases(ctx, conn)
	if err != nil {
		return false, err
	}
	if len(leases) > 0 {
		return false, i.inUse(ctx, conn, "create the schema", leases)
	}
	if err := migrate(ctx, conn); err != nil {
		return false, err
	}
	// A session can hold a lock in both modes, so there is no gap. If the session ends
	// in between, no session holds the lock and the schema is complete.
	shared, err := i.tryLock(ctx, conn, tryInstallationShared)
	if err == nil && shared {
		_, err = i.tryLock(ctx, conn, endInstallation)
	}
	return err == nil && shared, err
}

// claimInstallation acquires the lock exclusively, for changes without running nodes, or
// returns an error with the list of running nodes.
func (i *Installation) claimInstallation(ctx context.Context, conn *pgx.Conn, doing string) error {
	for deadline := time.Now().Add(installationWait); ; {
		locked, err := i.tryLock(ctx, conn, tryInstallation)
		if err != nil {
			return err
		}
		if locked {
			return i.refuseNodes(ctx, conn, doing)
		}
		if time.Now().After(deadline) {
			return i.inUse(ctx, conn, doing, nil)
		}
		if err := pauseForInstallation(ctx); err != nil {
			return err
		}
	}
}

// refuseNodes returns an error if there are nodes without the installation's lock: live
// ones whose program is too old to know it, and lost ones that may still trust their
// terms.
func (i *Installation) refuseNodes(ctx context.Context, conn *pgx.Conn, doing string) error {
	living, err := i.liveNodes(ctx, conn)
	if err != nil {
		return err
	}
	if len(living) > 0 {
		return i.inUse(ctx, conn, doing, living)
	}
	if err := i.correct(ctx, conn); err != nil {
		return err
	}
	trusting, err := i.trustingNodes(ctx, conn)
	if err != nil || len(trusting) == 0 {
		return err
	}
	return fmt.Errorf("%w: cannot %s in schema %q with prefix %q: sessions have ended, but these nodes may still lead: %s: try again then",
		dberr.ErrInstallationInUse, doing, i.Names.Schema, i.Names.Prefix, strings.Join(trusting, ", "))
}

func (i *Installation) tryLock(ctx context.Context, conn *pgx.Conn, statement string) (done bool, err error) {
	first, second := installation.LockKey(i.Names.Schema, i.Names.Prefix)
	if err := conn.QueryRow(ctx, statement, first, second).Scan(&done); err != nil {
		return false, fmt.Errorf("lock the installation: %w", err)
	}
	return done, nil
}

func pauseForInstallation(ctx context.Context) error {
	if !wakeup.Sleep(ctx, installationPause+rand.N(installationPause)) {
		return fmt.Errorf("wait for the installation's lock: %w", context.Cause(ctx))
	}
	return nil
}

// inUse returns the error with the list of live nodes of the installation.
func (i *Installation) inUse(ctx context.Context, conn *pgx.Conn, doing string, living []string) error {
	if len(living) == 0 {
		var err error
		if living, err = i.liveNodes(ctx, conn); err != nil {
			return err
		}
	}
	who := "a session that has just ended"
	if len(living) > 0 {
		who = strings.Join(living, ", ")
	}
	return fmt.Errorf("%w: cannot %s in schema %q with prefix %q: in use by %s: stop these nodes first or, if a host is gone, terminate their sessions with pg_terminate_backend",
		dberr.ErrInstallationInUse, doing, i.Names.Schema, i.Names.Prefix, who)
}

const (
	readHolders = `
SELECT l.pid, coalesce(a.application_name, ''), coalesce(host(a.client_addr), '')
FROM pg_catalog.pg_locks l
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory'
    AND l.granted
    AND l.pid <> pg_catalog.pg_backend_pid()
    AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
    AND l.classid = $1::int::oid
    AND l.objid = $2::int::oid
    AND l.objsubid = 2
ORDER BY l.pid`

	mayReadNodes = `
SELECT coalesce(has_table_privilege(to_regclass($1), 'SELECT') AND has_table_privilege(to_regclass($2), 'SELECT'), false)`

	// The node lock proves a node to be alive.
	readLivingNodes = `
SELECT n.pid, n.name, n.hostname
FROM {nodes} n
JOIN pg_catalog.pg_locks l
    ON l.locktype = 'advisory'
    AND l.granted
    AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
    AND l.classid = $1::int::oid
    AND l.objid = n.incarnation::oid
    AND l.objsubid = 2
    AND l.mode = 'ExclusiveLock'
    AND l.pid = n.pid
ORDER BY n.name, n.pid`
)

// liveNodes lists the sessions with the installation's lock, and the live nodes of the
// registry, by name if the registry can be read.
func (i *Installation) liveNodes(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	nodes, err := i.readLivingNodes(ctx, conn)
	if err != nil {
		return nil, err
	}
	first, second := installation.LockKey(i.Names.Schema, i.Names.Prefix)
	rows, err := conn.Query(ctx, readHolders, first, second)
	if err != nil {
		return nil, fmt.Errorf("read the sessions of the installation: %w", err)
	}
	var (
		living            []string
		pid               int32
		application, host string
		seen              = map[int32]bool{}
	)
	add := func(text string) {
		if !seen[pid] {
			living = append(living, text)
		}
		seen[pid] = true
	}
	_, err = pgx.ForEachRow(rows, []any{&pid, &application, &host}, func() error {
		if name, known := nodes[pid]; known {
			add(name)
			return nil
		}
		text := fmt.Sprintf("PID %d", pid)
		if application != "" {
			text += fmt.Sprintf(" (%q)", application)
		}
		if host != "" {
			text += " at " + host
		}
		add(text)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the sessions of the installation: %w", err)
	}
	for other, name := range nodes {
		pid = other
		add(name)
	}
	return living, nil
}

// readLivingNodes returns the live nodes of the registry by their process ids, or
// none if the registry does not exist or may not be read.
func (i *Installation) readLivingNodes(ctx context.Context, conn *pgx.Conn) (map[int32]string, error) {
	var readable bool
	err := conn.QueryRow(ctx, mayReadNodes, i.Names.SQL("{nodes}"), i.Names.SQL("{installation}")).Scan(&readable)
	if err != nil || !readable {
		return nil, err
	}
	var id uuid.UUID
	if err := conn.QueryRow(ctx, i.Names.SQL(ReadInstallation)).Scan(&id); err != nil {
		return nil, ignoreNoRows(err)
	}
	rows, err := conn.Query(ctx, i.Names.SQL(readLivingNodes), NodeSpace(id))
	if err != nil {
		return nil, fmt.Errorf("read the live nodes: %w", err)
	}
	var (
		nodes      = map[int32]string{}
		pid        int32
		name, host string
	)
	_, err = pgx.ForEachRow(rows, []any{&pid, &name, &host}, func() error {
		nodes[pid] = fmt.Sprintf("node %q on %q, PID %d", name, host, pid)
		return nil
	})
	return nodes, err
}

// Sessions with the installation's lock and a node lock, but none of this installation's.
// It reads each lock once: the planner expects one lock, so joins would compare all pairs.
// Prepared transactions, which have locks and no process, are no sessions.
const readStrangers = `
SELECT 'PID ' || pid
FROM pg_catalog.pg_locks
WHERE locktype = 'advisory'
    AND granted
    AND objsubid = 2
    AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
    AND pid IS NOT NULL
GROUP BY pid
HAVING bool_or(classid = $1::int::oid AND objid = $2::int::oid)
    AND bool_or(mode = 'ExclusiveLock')
    AND NOT bool_or(mode = 'ExclusiveLock' AND classid = $3::int::oid)
ORDER BY 1`

// Prove checks two things once the node lock is held, since an operator may have replaced
// the tables:
//
//   - the installation is still the one the session has read;
//   - no node is alive under another installation in its place.
//
// Of two sessions with different ids, one sees the other's node lock or the new id. conn
// may have been sent the statements ahead; direct is the connection below it.
func (i *Installation) Prove(ctx context.Context, conn link.Connection, direct *pgx.Conn, id uuid.UUID, space int32) error {
	var present uuid.UUID
	if err := conn.QueryRow(ctx, i.Names.SQL(ReadInstallation)).Scan(&present); err != nil {
		return fmt.Errorf("read the installation: %w", err)
	}
	if present != id {
		return fmt.Errorf("%w: the tables were replaced while the session opened", dberr.ErrInstallationInUse)
	}
	strange := i.StrangersCall(space)
	rows, err := conn.Query(ctx, strange.SQL, strange.Args...)
	if err != nil {
		return fmt.Errorf("check for sessions of another installation: %w", err)
	}
	strangers, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("check for sessions of another installation: %w", err)
	}
	if len(strangers) > 0 {
		return i.inUse(ctx, direct, "open a session: the tables were replaced under nodes that live", strangers)
	}
	return nil
}

// StrangersCall is the second statement of Prove.
func (i *Installation) StrangersCall(space int32) link.Call {
	first, second := installation.LockKey(i.Names.Schema, i.Names.Prefix)
	return link.Call{SQL: readStrangers, Args: []any{first, second, space}}
}
