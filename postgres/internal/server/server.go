// Package server identifies the server of a connection: its version, the life of its lock
// table, the room there, and the history of its data.
package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/grantee"
	"github.com/exactly-one/tenure/postgres/internal/link"
	"github.com/exactly-one/tenure/postgres/internal/sqlstate"
)

// Server identifies the server of a connection, and the current life of its lock table. A
// crash, a restart or a failover changes it, and all locks are lost.
type Server struct {
	Version int // server_version_num
	system  string
	Start   time.Time // of the postmaster

	// The row of the unlogged table. Two events empty it: a crash restart, which changes
	// nothing else, and the promotion of a replica.
	ID          uuid.UUID
	BornAt      time.Duration // when the row was made, at the latest, on the node's monotonic clock
	UpAt        time.Duration // the same, or the later start of the server
	ByMigration bool
	Returned    bool          // the node came here later, from a server not continued by this one
	Longest     time.Duration // lease of all nodes in the registry

	Encoding  string // of the database
	LockTable LockCapacity
}

// UnicodeEncoding is the encoding of databases for any name.
const UnicodeEncoding = "UTF8"

// Lineage names the history of the data: the system and its timeline.
func (s Server) Lineage() string { return s.system }

// Epoch names one life of the lock table within a lineage.
func (s Server) Epoch() string {
	return fmt.Sprintf("%d/%s", s.Start.UnixMicro(), s.ID)
}

// Notice makes the waits count from the node's arrival here, if it came after this server
// started, and from a server not continued by this one.
func (s *Server) Notice(a Arrival) {
	if a.returned && a.at > s.UpAt {
		s.BornAt, s.UpAt, s.ByMigration, s.Returned = a.at, a.at, false, true
	}
}

// Same reports whether two connections reached the same life of the same
// server, as far as can be seen without the schema.
func (s Server) Same(other Server) bool {
	return s.system == other.system && s.Start.Equal(other.Start)
}

// ProbeServer acquires a lock with a random key. The watch connection must not be able to
// acquire it too. The key is no pair of integers: other nodes take a session with a pair
// for a node.
const ProbeServer = `
SELECT
    pg_backend_pid(),
    current_setting('server_version_num')::int,
    version(),
    pg_is_in_recovery(),
    pg_postmaster_start_time(),
    pg_try_advisory_lock($1::bigint)`

// IdentifyServer returns the lineage, the room and the encoding of a server.
//
// The control file is late after a promotion, so the timeline is read from the name of
// the current segment.
const IdentifyServer = `
SELECT
    system_identifier::text || '/' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8),
    current_setting('max_locks_per_transaction')::int,
    current_setting('max_connections')::int + current_setting('max_prepared_transactions')::int,
    current_setting('server_encoding')
FROM pg_control_system()`

// ReadStart returns when the server started.
const ReadStart = `SELECT pg_postmaster_start_time()`

// EndProbe releases the lock of ProbeServer.
const EndProbe = `SELECT pg_advisory_unlock($1::bigint)`

// Probe is the result for one connection.
type Probe struct {
	Server
	Name   string
	Pooled bool
	Locked bool
}

// NewProbeKey returns a random key: two backends must not open with the same one.
func NewProbeKey() int64 { return int64(rand.Uint64()) }

// grantLock allows the statement.
const grantLock = "GRANT EXECUTE ON FUNCTION pg_try_advisory_lock(bigint) TO "

// ProbeCall is the statement of ProbeConnection.
func ProbeCall(key int64) link.Call { return link.Call{SQL: ProbeServer, Args: []any{key}} }

// ProbeConnection examines the server of a connection.
func ProbeConnection(ctx context.Context, conn link.Connection, key int64) (Probe, error) {
	var (
		p        Probe
		pid      uint32
		recovery bool
	)
	err := conn.QueryRow(ctx, ProbeServer, key).Scan(&pid, &p.Version, &p.Name, &recovery, &p.Start, &p.Locked)
	switch {
	case sqlstate.Has(err, sqlstate.InsufficientPrivilege):
		return p, fmt.Errorf("%w: %s%s: %w", dberr.ErrPrivilege, grantLock, grantee.Of(conn), err)
	case err != nil:
		return p, fmt.Errorf("%w: examine the server: %w", tenure.ErrConnection, err)
	}
	p.Pooled = pid != conn.PgConn().PID()
	if recovery {
		return p, fmt.Errorf("%w and takes no writes: connect to the primary, or name every host in the connection string", dberr.ErrInRecovery)
	}
	return p, nil
}

// Identify reads the identity of a server; only after the refusal of other databases with
// this protocol, since they lack the functions.
func Identify(ctx context.Context, conn link.Querier, s *Server) error {
	err := conn.QueryRow(ctx, IdentifyServer).Scan(&s.system, &s.LockTable.PerTransaction, &s.LockTable.Transactions, &s.Encoding)
	if err != nil {
		if sqlstate.Has(err, sqlstate.InsufficientPrivilege) {
			return fmt.Errorf("%w: GRANT EXECUTE ON FUNCTION pg_control_system() TO %s: %w", dberr.ErrPrivilege, grantee.Of(conn), err)
		}
		return fmt.Errorf("%w: identify the server: %w", tenure.ErrConnection, err)
	}
	return nil
}
