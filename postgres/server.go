package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/postgres/internal/link"
	"github.com/exactly-one/tenure/postgres/internal/sqlstate"
)

const oldestServer = 140000

// server identifies the server that a connection has reached, and the current life
// of its lock table. A crash, a restart or a failover changes it, and all locks are
// lost.
type server struct {
	version int // server_version_num
	system  string
	start   time.Time // of the postmaster

	// The row of the unlogged table: a crash restart, which changes nothing
	// else, empties it, and so does the promotion of a replica.
	id          uuid.UUID
	bornAt      time.Duration // when that row was made, at the latest, on the node's monotonic clock
	upAt        time.Duration // the same, or when the server started if that was later
	byMigration bool
	returned    bool          // the node came here after that, from a server that this one does not continue
	longest     time.Duration // lease of all nodes in the registry

	encoding  string // of the database
	lockTable lockCapacity
}

// unicodeEncoding is that of databases which hold any name.
const unicodeEncoding = "UTF8"

// lineage names the history of the data: the system and its timeline.
func (s server) lineage() string { return s.system }

// epoch names one life of the lock table within a lineage.
func (s server) epoch() string {
	return fmt.Sprintf("%d/%s", s.start.UnixMicro(), s.id)
}

// notice makes the waits count from when the node came here, if it came from a server that
// this one does not continue, and after this server started.
func (s *server) notice(a arrival) {
	if a.returned && a.at > s.upAt {
		s.bornAt, s.upAt, s.byMigration, s.returned = a.at, a.at, false, true
	}
}

// same reports whether two connections reached the same life of the same
// server, as far as can be seen without the schema.
func (s server) same(other server) bool {
	return s.system == other.system && s.start.Equal(other.start)
}

// checkServer returns an error if another connection reached another server than the
// session: after a failover, the session may still be connected to the old primary.
func (s *session) checkServer(ctx context.Context, conn *pgx.Conn) error {
	var found server
	if err := conn.QueryRow(ctx, readStart).Scan(&found.start); err != nil {
		return err
	}
	if err := identify(ctx, conn, &found); err != nil {
		return err
	}
	if !found.same(s.server) {
		return fmt.Errorf("%w: the connection reached another server than the session", tenure.ErrConnection)
	}
	return nil
}

// The probe acquires a lock with a random key. The watch connection must not be
// able to acquire it too. It is no pair of integers: other nodes take a session that holds
// a pair for a node.
const probeServer = `
SELECT
    pg_backend_pid(),
    current_setting('server_version_num')::int,
    version(),
    pg_is_in_recovery(),
    pg_postmaster_start_time(),
    pg_try_advisory_lock($1::bigint)`

// The control file is late after a promotion, so the timeline is read from the
// name of the segment that is being written.
const identifyServer = `
SELECT
    system_identifier::text || '/' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8),
    current_setting('max_locks_per_transaction')::int,
    current_setting('max_connections')::int + current_setting('max_prepared_transactions')::int,
    current_setting('server_encoding')
FROM pg_control_system()`

const readStart = `SELECT pg_postmaster_start_time()`

const endProbe = `SELECT pg_advisory_unlock($1::bigint)`

// probe is what one connection found.
type probe struct {
	server
	name   string
	pooled bool
	locked bool
}

// newProbeKey returns a random key, so that two backends that open do not use the same one.
func newProbeKey() int64 { return int64(rand.Uint64()) }

// probeCall is the statement of probeConnection.
func probeCall(key int64) link.Call { return link.Call{SQL: probeServer, Args: []any{key}} }

func probeConnection(ctx context.Context, conn link.Connection, key int64) (probe, error) {
	var (
		p        probe
		pid      uint32
		recovery bool
	)
	err := conn.QueryRow(ctx, probeServer, key).Scan(&pid, &p.version, &p.name, &recovery, &p.start, &p.locked)
	if err != nil {
		return p, fmt.Errorf("%w: examine the server: %w", tenure.ErrConnection, err)
	}
	p.pooled = pid != conn.PgConn().PID()
	if recovery {
		return p, fmt.Errorf("%w and takes no writes: connect to the primary, or name every host in the connection string", dberr.ErrInRecovery)
	}
	return p, nil
}

// identify reads which server it is; only after refuse, since other databases
// that speak the protocol lack the functions.
func identify(ctx context.Context, conn link.Querier, s *server) error {
	err := conn.QueryRow(ctx, identifyServer).Scan(&s.system, &s.lockTable.perTransaction, &s.lockTable.transactions, &s.encoding)
	if err != nil {
		if sqlstate.Has(err, sqlstate.InsufficientPrivilege) {
			return fmt.Errorf("%w: GRANT EXECUTE ON FUNCTION pg_control_system() TO this user: %w", dberr.ErrPrivilege, err)
		}
		return fmt.Errorf("%w: identify the server: %w", tenure.ErrConnection, err)
	}
	return nil
}

// refuse decides from the probes of both connections whether elections would be
// safe here.
func refuse(session, watch probe) error {
	switch {
	case session.pooled || watch.pooled:
		return fmt.Errorf("%w: the server process that answers is not the one that accepted the connection. "+
			"Connect directly to PostgreSQL; session pooling does not suffice either, since a pooler keeps a session, and its locks, after its client has gone", dberr.ErrPooled)
	case !strings.HasPrefix(session.name, "PostgreSQL ") && session.locked && watch.locked:
		return fmt.Errorf("%w: it is %s; use PostgreSQL 14 or later", ErrLocksIgnored, firstWords(session.name))
	case session.version < oldestServer:
		return fmt.Errorf("%w: it is %s; PostgreSQL 14 or later is needed", dberr.ErrServerTooOld, firstWords(session.name))
	case !session.start.Equal(watch.start):
		return fmt.Errorf("%w: two connections reached two servers, one started at %s, one at %s",
			tenure.ErrConnection, session.start.Format(time.RFC3339), watch.start.Format(time.RFC3339))
	case session.locked && watch.locked:
		return fmt.Errorf("%w: two sessions hold the same lock. Connect directly to PostgreSQL 14 or later", ErrLocksIgnored)
	case !session.locked:
		return fmt.Errorf("%w: another session holds the test lock", tenure.ErrConnection)
	}
	return nil
}

// firstWords shortens the text of version().
func firstWords(version string) string {
	words := strings.Fields(version)
	return strings.Join(words[:min(len(words), 2)], " ")
}
