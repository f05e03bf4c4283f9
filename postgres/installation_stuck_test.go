package postgres

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// After an operator's DROP SCHEMA, nothing is left that states how long a stuck
// session is trusted. The session keeps the lock of the installation, so no new
// installation begins until an operator ends the session as the error says.
// PostgreSQL 17 and later end the session after its lease: transaction_timeout.
func TestRemovedInstallationWaitsForStuckSession(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	b := newBackend(t)
	stuck, rival := open(t, b, brief), open(t, b, brief)
	stuck.take("scheduler")
	rival.refused("scheduler")
	// No Sync follows, and it has no lock on a table, for which DROP would wait.
	last := stuck.stickIn(&pgproto3.Parse{Query: "SELECT"}, &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Flush{})
	exec(t, b, dropSchema)
	if _, err := rival.Heartbeat(tenure.Load{}); !errors.Is(err, tenure.ErrSuperseded) {
		t.Errorf("the rival's heartbeat: %v; want ErrSuperseded", err)
	}
	rival.Abort()
	eventually(t, b, `SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)`, rival.listener.pid)

	pid := fmt.Sprintf("PID %d", stuck.listener.pid)
	endsItself := pgtest.Shared(t).Major() >= 17
	refused := 2 * stuckLease
	if endsItself {
		refused = stuckLease / 2
	}
	for time.Since(last) < refused {
		_, err := tryOpen(t, b)
		if !errors.Is(err, dberr.ErrInstallationInUse) || !strings.Contains(err.Error(), pid) || !strings.Contains(err.Error(), "pg_terminate_backend") {
			t.Fatalf("%v after the last heartbeat: %v; want ErrInstallationInUse, %s and the advice", time.Since(last), err, pid)
		}
		if version, err := b.SchemaVersion(t.Context()); version != 0 || err != nil {
			t.Fatalf("%v after the last heartbeat: the schema has version %d, %v; want none", time.Since(last), version, err)
		}
		conn := pgtest.Conn(t, pgtest.Shared(t).DSN())
		if _, err := conn.Exec(t.Context(), migrationSQL(t, b)); err == nil || !strings.Contains(err.Error(), "nodes still live") {
			t.Fatalf("the printed script: %v; want it refused", err)
		}
	}
	if !endsItself {
		exec(t, b, `SELECT pg_terminate_backend($1)`, stuck.listener.pid)
	}
	eventually(t, b, `SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)`, stuck.listener.pid)
	open(t, b).take("scheduler")
}
