package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
)

// interfere runs statements on the session's connection as another program would.
func (p *peer) interfere(sql string) {
	p.t.Helper()
	if _, err := p.conn.PgConn().Exec(context.Background(), sql).ReadAll(); err != nil {
		p.t.Fatalf("%s: %v", sql, err)
	}
}

// TestHeartbeatDetectsInterference: lost settings are detected at the next heartbeat,
// lost locks at the eighth at the latest, however long the last check is ago.
func TestHeartbeatDetectsInterference(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql    string
		within int // heartbeats
	}{
		"DISCARD ALL":      {"DISCARD ALL", 1},
		"RESET ALL":        {"RESET ALL", 1},
		"another setting":  {"SET tenure.incarnation = '7'", 1},
		"unlock all":       {"SELECT pg_advisory_unlock_all()", 8},
		"one lock more":    {"SELECT pg_advisory_lock(12345)", 8},
		"the term ended":   {"UPDATE {terms} SET ended_at = clock_timestamp(), end_reason = 'resigned'", 1}, // Set by hand: by another program.
		"the term taken":   {"UPDATE {terms} SET incarnation = incarnation + 1", 1},                         // Set by hand: by another program.
		"node lock missed": {"SELECT pg_advisory_unlock(classid::int, objid::int) FROM pg_locks WHERE pid = pg_backend_pid() AND objsubid = 2", 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := open(t, newBackend(t))
			p.take("scheduler")
			for p.beats%auditBeats != 0 { // the longest time until the next check of the locks
				p.beat()
			}
			p.interfere(p.backend.names.SQL(c.sql))
			for beats := 1; ; beats++ {
				_, err := p.Heartbeat(tenure.Load{})
				if err == nil && beats < c.within {
					continue
				}
				if !errors.Is(err, tenure.ErrSessionLost) {
					t.Errorf("after %d heartbeats: %v; want the session lost", beats, err)
				}
				return
			}
		})
	}
}

// Reading pg_locks stops the lock table, and there are more candidates than leaders. A
// count would find the lock of another program.
func TestOnlySessionsWithRolesCountLocks(t *testing.T) {
	t.Parallel()
	p := open(t, newBackend(t))
	p.interfere("SELECT pg_advisory_lock(12345)")
	for beats := 1; beats <= auditBeats; beats++ {
		if _, err := p.Heartbeat(tenure.Load{}); err != nil {
			t.Fatalf("a session without roles has counted the locks at heartbeat %d: %v", beats, err)
		}
	}
	p.take("scheduler")
	for beats := 1; beats <= auditBeats; beats++ {
		if _, err := p.Heartbeat(tenure.Load{}); err != nil {
			return
		}
	}
	t.Errorf("a session with a role has not counted the locks in %d heartbeats", auditBeats)
}

// No session without roles counts its locks: the others find its node lock free.
func TestUnlockedSessionWithoutRolesIsFoundDead(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := open(t, b)
	open(t, b)
	p.interfere("SELECT pg_advisory_unlock_all()")
	eventually(t, b, "SELECT status = 'dead' FROM {nodes} WHERE id = $1", p.id)
	if _, err := p.Heartbeat(tenure.Load{}); !errors.Is(err, tenure.ErrSuperseded) {
		t.Errorf("%v; want it superseded", err)
	}
}

func TestHeartbeatDetectsNewerSession(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	first := open(t, b)
	second := open(t, b, func(o *peerOptions) { o.id = first.id })
	if first.Incarnation() >= second.Incarnation() {
		t.Errorf("the incarnations are %d, then %d", first.Incarnation(), second.Incarnation())
	}
	if _, err := first.Heartbeat(tenure.Load{}); !errors.Is(err, tenure.ErrSuperseded) {
		t.Errorf("the older session: %v; want it superseded", err)
	}
	second.beat()
}

// TestHeartbeatFailsAfterNodeWasMarkedDead: a session whose row says "dead" ends.
//
// Set by hand: no node marks another dead whose session is open; only a change by
// SQL does.
func TestHeartbeatFailsAfterNodeWasMarkedDead(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := open(t, b)
	exec(t, b, "UPDATE {nodes} SET status = 'dead' WHERE id = $1", p.id)
	if _, err := p.Heartbeat(tenure.Load{}); !errors.Is(err, tenure.ErrSuperseded) {
		t.Errorf("%v; want it superseded", err)
	}
}

func TestHeartbeatWritesLoad(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := open(t, b)
	if _, err := p.Heartbeat(tenure.Load{Connections: 3, Jobs: 4, CPU: 12.5, Memory: 50}); err != nil {
		t.Fatal(err)
	}
	if !row[bool](t, b, `SELECT (current_connections, current_jobs, cpu_usage, memory_usage) = (3, 4, 12.5, 50) FROM {nodes} WHERE id = $1`, p.id) {
		t.Error("the load is not in the node's row")
	}
}

// The server itself ends a session that has been silent for a lease, and not
// before.
func TestServerEndsSilentSession(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	lease := 4 * time.Second // longer than a busy machine takes between two statements
	other := open(t, b)
	silent := open(t, b, func(o *peerOptions) { o.timing.Lease = lease })
	silent.take("scheduler")
	quiet := time.Now() // the server counts from the end of the statement, the client from its begin
	silent.beat()
	other.refused("scheduler")
	other.drain()
	other.win("scheduler")
	if after := time.Since(quiet); after < lease || after > 2*lease {
		t.Errorf("the role was free after %v; want a little more than the lease of %v", after, lease)
	}
	if reason := row[string](t, b, "SELECT end_reason FROM {history} WHERE role = 'scheduler'"); reason != string(history.EndLeaseExpired) {
		t.Errorf("the term ended with reason %q, want %q", reason, history.EndLeaseExpired)
	}
	var err error
	for changed := true; changed; { // there are notifications about the others first
		changed, err = silent.Wait(context.Background())
	}
	if !errors.Is(err, tenure.ErrSessionLost) || !errors.Is(err, tenure.ErrConnection) || !strings.Contains(err.Error(), "57P05") {
		t.Errorf("the silent session: %v; want it lost by the server's timeout of idle sessions", err)
	}
}

// A session that the server does not count as idle is terminated by its
// successor in the ring.
func TestReaperEndsStuckSession(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	lease := 3 * time.Second // as above
	stuck := open(t, b, func(o *peerOptions) { o.timing.Lease = lease })
	other := open(t, b, func(o *peerOptions) { o.timing.Margin = 100 * time.Millisecond })
	stuck.take("scheduler")
	quiet := time.Now()
	stuck.beat()
	// A message without Sync: the server waits for the rest of the message and does
	// not count the client as idle.
	stuck.interfere("SET statement_timeout = 0")
	frontend := stuck.conn.PgConn().Frontend()
	frontend.SendParse(&pgproto3.Parse{Query: "SELECT 1"})
	if err := frontend.Flush(); err != nil {
		t.Fatal(err)
	}
	other.drain()
	other.win("scheduler")
	if after := time.Since(quiet); after < lease {
		t.Errorf("the role was free after %v, before the lease of %v was over", after, lease)
	}
	if reason := row[string](t, b, "SELECT end_reason FROM {history} WHERE role = 'scheduler'"); reason != string(history.EndLeaseExpired) {
		t.Errorf("the term ended with reason %q, want %q", reason, history.EndLeaseExpired)
	}
}

func TestIncarnationsSkipRowsOfRestoredServer(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	first := open(t, b)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	exec(t, b, `INSERT INTO {nodes} (id, incarnation, name, hostname, lease_ms, pid, backend_start)
		VALUES ($1, 40, 'old', '', 1000, 0, now())`, uuid.New())
	if p := open(t, b); p.Incarnation() <= 40 {
		t.Errorf("the incarnation is %d, want more than 40", p.Incarnation())
	}
}
