package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/installation"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// The programs do not remove the schema while a node runs. If an operator does
// so with SQL, a new installation takes its place only when all sessions of the
// old one have ended.
func TestNewInstallationWaitsForSessionsOfRemovedOne(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Shared(t)
	schema := server.Schema(t)
	r := newLeaderWatch(t)
	first := backendOn(t, server.DSN(), Config{Schema: schema})
	r.candidate(first, "first", 3*time.Second)
	if name := r.next(); name != "first" {
		t.Fatalf("%s leads", name)
	}
	second := backendOn(t, server.DSN(), Config{Schema: schema})
	second.installation.Core = additive(`SELECT`)
	if err := second.Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, version := range []int{0, core.Newest()} {
		err := second.MigrateDown(context.Background(), second.installation.Core.Name, version)
		if !errors.Is(err, dberr.ErrInstallationInUse) || !strings.Contains(err.Error(), `node "first" on `) {
			t.Fatalf("migrate down to %d: %v; want ErrInstallationInUse and the node", version, err)
		}
	}
	exec(t, second, dropSchema)
	if err := second.Migrate(context.Background()); err == nil {
		// The first node may lead again under the new schema by now.
		if r.ended.Load() == 0 {
			t.Error("a new schema was made while the leader of the old one worked")
		}
	} else if !errors.Is(err, dberr.ErrInstallationInUse) || !strings.Contains(err.Error(), "first session") {
		t.Errorf("migrate: %v; want ErrInstallationInUse and the session", err)
	}
	r.candidate(second, "second", 3*time.Second)
	r.next()
}

// An operator replaces the tables that a node works with by others.
// Set by hand: the statements are the operator's.
func TestReplacedInstallationEndsSessions(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]string{
		"tables": dropSchema,
		"id":     `UPDATE {installation} SET id = gen_random_uuid(); ALTER TABLE {terms} DISABLE TRIGGER USER; DELETE FROM {terms}; ALTER TABLE {terms} ENABLE TRIGGER USER`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := pgtest.Shared(t)
			b := backendOn(t, server.DSN(), Config{Schema: server.Schema(t)})
			if name == "tables" {
				replace += strings.Replace(migrationSQL(t, b), b.installation.ClaimSQL("pg_try_advisory_xact_lock"), "", 1)
			}
			old := open(t, b)
			old.take("scheduler")
			exec(t, b, replace)
			if _, err := tryOpen(t, b); !errors.Is(err, dberr.ErrInstallationInUse) {
				t.Errorf("open while a session of the other installation is open: %v; want ErrInstallationInUse", err)
			}
			if _, err := old.Heartbeat(tenure.Load{}); !errors.Is(err, tenure.ErrSuperseded) {
				t.Errorf("heartbeat: %v; want ErrSuperseded", err)
			}
			old.Abort()
			eventually(t, b, `SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)`, old.listener.pid)
			open(t, b).take("scheduler")
		})
	}
}

// While a session leads, no other session can give the role another lock key or
// delete its row: after that, a node with another key could lead beside the
// leader.
// Set by hand: the statements are what the tables must refuse.
func TestRoleRowCannotBeChangedDuringSessions(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := open(t, b)
	p.take("scheduler")
	changes := map[string]string{
		`UPDATE {terms} SET lock_key = '7'`:                                             "holds the lock",
		`UPDATE {terms} SET ended_at = now(), end_reason = 'resigned'`:                  "another program cannot end its term",
		`UPDATE {terms} SET node_id = gen_random_uuid(), incarnation = incarnation + 1`: "another program cannot end its term",
		`DELETE FROM {terms}`: "nodes live",
		`TRUNCATE {terms}`:    "nodes live",
	}
	conn := pgtest.Conn(t, pgtest.Shared(t).DSN())
	for change, reason := range changes {
		if _, err := conn.Exec(context.Background(), b.names.SQL(change)); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v; want it refused", change, err)
		}
	}
	p.beat()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	for change := range changes {
		exec(t, b, change)
	}
	open(t, b).take("scheduler")
}

// An operator restores an older state of the tables while a node runs. The
// node's session ends, no other node leads before that, and no term number is
// repeated.
// Set by hand: the statements are the operator's.
func TestRestoredTablesEndSession(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	exec(t, b, `CREATE SCHEMA IF NOT EXISTS {schema}; `+migrationSQL(t, b))
	p := open(t, b)
	first := p.take("scheduler")
	exec(t, b, `
		DELETE FROM {nodes};
		ALTER TABLE {terms} DISABLE TRIGGER USER;
		UPDATE {terms} SET term = 1, node_id = gen_random_uuid(), ended_at = clock_timestamp(), end_reason = 'resigned';
		ALTER TABLE {terms} ENABLE TRIGGER USER;
		DELETE FROM {history};
		SELECT setval({incarnations:regclass}, 1, false)`)
	other := func() *peer {
		for { // numbers of open sessions are in use
			p, err := tryOpen(t, b)
			if err == nil {
				return p
			}
			if !strings.Contains(err.Error(), "is held by another session") {
				t.Fatal(err)
			}
		}
	}()
	other.refused("scheduler")
	if _, err := p.Heartbeat(tenure.Load{}); !errors.Is(err, tenure.ErrSuperseded) {
		t.Errorf("heartbeat: %v; want ErrSuperseded", err)
	}
	other.refused("scheduler") // its work may still run
	p.Abort()
	if second := other.win("scheduler"); second.Term <= first.Term {
		t.Errorf("term %d after term %d", second.Term, first.Term)
	}
}

// A node that is marked dead and forgotten while its process runs keeps its
// locks until its session has ended.
func TestForgottenNodeKeepsItsLocks(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p, other := open(t, b), open(t, b)
	p.take("scheduler")
	exec(t, b, `DELETE FROM {nodes} WHERE id = $1`, p.id)
	other.refused("scheduler")
	if _, err := p.Heartbeat(tenure.Load{}); !errors.Is(err, tenure.ErrSuperseded) {
		t.Errorf("heartbeat: %v; want ErrSuperseded", err)
	}
	other.refused("scheduler")
	p.Abort()
	other.win("scheduler")
}

// Without the row that identifies the server's current life, sessions take it
// for another server and wait. They never lead immediately.
func TestRemovedServerRowCausesWait(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := open(t, b)
	p.take("scheduler")
	exec(t, b, `DELETE FROM {server}`)
	other := open(t, b)
	if other.server.ID == p.server.ID {
		t.Error("the row was not created again")
	}
	other.refused("scheduler")
	p.beat()
	p.release("scheduler", history.EndResigned)
	if attempt := other.try("scheduler")[0]; attempt.Outcome != tenure.OutcomePending {
		t.Errorf("%+v; want it to wait, as on another server", attempt)
	}
}

// No node leads under the new name of a schema, whose functions still use the
// old name, and no program creates a new schema under the old name while a
// session is open.
func TestRenamedSchemaIsNotUsed(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Shared(t)
	from, to := server.Schema(t), server.Schema(t)
	b, renamed := backendOn(t, server.DSN(), Config{Schema: from}), backendOn(t, server.DSN(), Config{Schema: to})
	p := open(t, b)
	p.take("scheduler")
	exec(t, b, `ALTER SCHEMA {schema} RENAME TO "`+to+`"`)
	if _, err := tryOpen(t, renamed); err == nil {
		t.Error("under the new name: a session opened")
	}
	if _, err := tryOpen(t, b); !errors.Is(err, dberr.ErrInstallationInUse) {
		t.Errorf("under the old name: %v; want ErrInstallationInUse", err)
	}
	if _, err := p.Heartbeat(tenure.Load{}); !errors.Is(err, tenure.ErrSuperseded) {
		t.Errorf("heartbeat: %v; want ErrSuperseded", err)
	}
}

// The script for operators who migrate with their own tools creates no
// installation beside one that has live nodes.
func TestPrintedScriptRefusesLiveNodes(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := open(t, b)
	exec(t, b, dropSchema)
	conn := pgtest.Conn(t, pgtest.Shared(t).DSN())
	if _, err := conn.Exec(context.Background(), migrationSQL(t, b)); err == nil || !strings.Contains(err.Error(), "nodes still live") {
		t.Errorf("the script under a session: %v; want it refused", err)
	}
	p.Abort()
	eventually(t, b, `SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)`, p.listener.pid)
	exec(t, b, `ROLLBACK; `+migrationSQL(t, b))
	open(t, b).take("scheduler")
}

// Each session holds the lock, notices if the lock is gone, and no role with
// its key can be led.
func TestSessionHoldsInstallationLock(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	if err := b.Migrate(context.Background()); err != nil { // so that the session finds the schema
		t.Fatal(err)
	}
	p := open(t, b)
	first, second := installation.LockKey(b.config.Schema, b.config.Prefix)
	attempts, err := p.TryAcquire([]tenure.AcquireRequest{{Role: tenure.KeyPairRole(first, second)}})
	if err != nil || attempts[0].Outcome != tenure.OutcomeHeld {
		t.Errorf("a role with the key of the lock: %v, %v; want it busy", attempts, err)
	}
	if err := p.reconcile(); err != nil {
		t.Fatal(err)
	}
	if !row[bool](t, b, `SELECT NOT pg_try_advisory_lock($1::int, $2::int)`, first, second) {
		t.Fatal("the lock is free while a session is open")
	}
	p.take("scheduler") // only a session that holds roles counts its locks
	for range auditBeats {
		p.beat()
	}
	if _, err := p.conn.Exec(context.Background(), `SELECT pg_advisory_unlock_shared($1::int, $2::int)`, first, second); err != nil {
		t.Fatal(err)
	}
	for range auditBeats {
		if _, err = p.Heartbeat(tenure.Load{}); err != nil {
			break
		}
	}
	if !errors.Is(err, tenure.ErrSuperseded) {
		t.Errorf("without the lock: %v; want ErrSuperseded", err)
	}
}
