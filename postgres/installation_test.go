package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/installation"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// TestRemovedInstallation: nobody removes the schema under a node that lives, and
// where somebody does it by hand, a new one takes its place only when all
// sessions of the old one have ended.
func TestRemovedInstallation(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	schema := server.Schema(t)
	r := newReign(t)
	first := backendOn(t, server.DSN(), Config{Schema: schema})
	r.candidate(first, "first", 3*time.Second)
	if name := r.next(); name != "first" {
		t.Fatalf("%s leads", name)
	}
	second := backendOn(t, server.DSN(), Config{Schema: schema})
	for _, version := range []int{0, len(migrations) - 1} {
		err := second.MigrateDown(context.Background(), version)
		if !errors.Is(err, tenure.ErrInstallationInUse) || !strings.Contains(err.Error(), `node "first" on `) {
			t.Fatalf("migrate down to %d: %v; want ErrInstallationInUse and the node", version, err)
		}
	}
	exec(t, second, `DROP SCHEMA {schema} CASCADE`)
	if err := second.Migrate(context.Background()); err == nil {
		if r.working.Load() > 0 {
			t.Error("a new schema was made while the leader of the old one worked")
		}
	} else if !errors.Is(err, tenure.ErrInstallationInUse) || !strings.Contains(err.Error(), "first session") {
		t.Errorf("migrate: %v; want ErrInstallationInUse and the session", err)
	}
	r.candidate(second, "second", 3*time.Second)
	r.next()
}

// TestReplacedInstallation: somebody puts other tables in the place of those that
// a node works with.
func TestReplacedInstallation(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]string{
		"tables": `DROP SCHEMA {schema} CASCADE; `,
		"id":     `UPDATE {installation} SET id = gen_random_uuid(); DELETE FROM {terms}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := pgtest.Shared(t)
			b := backendOn(t, server.DSN(), Config{Schema: server.Schema(t)})
			if name == "tables" {
				replace += strings.Replace(b.MigrationSQL(), b.claimSQL(), "", 1)
			}
			old := open(t, b)
			old.take("scheduler")
			exec(t, b, replace)
			if _, err := tryOpen(t, b); !errors.Is(err, tenure.ErrInstallationInUse) {
				t.Errorf("open while a session of the other installation lives: %v; want ErrInstallationInUse", err)
			}
			if _, err := old.Heartbeat(tenure.Load{}); !errors.Is(err, tenure.ErrSuperseded) {
				t.Errorf("heartbeat: %v; want ErrSuperseded", err)
			}
			old.Abort()
			eventually(t, b, `SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)`, old.news.pid)
			open(t, b).take("scheduler")
		})
	}
}

// TestPrintedScriptRefusesNodes: the script for those who migrate with tools of
// their own makes no installation beside one that lives.
func TestPrintedScriptRefusesNodes(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := open(t, b)
	exec(t, b, `DROP SCHEMA {schema} CASCADE`)
	conn := pgtest.Conn(t, pgtest.Shared(t).DSN())
	if _, err := conn.Exec(context.Background(), b.MigrationSQL()); err == nil || !strings.Contains(err.Error(), "nodes still live") {
		t.Errorf("the script under a session: %v; want it refused", err)
	}
	p.Abort()
	eventually(t, b, `SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)`, p.news.pid)
	exec(t, b, `ROLLBACK; `+b.MigrationSQL())
	open(t, b).take("scheduler")
}

// TestInstallationLock: each session holds the lock, it is noticed when it is
// gone, and a role with its key cannot be led.
func TestInstallationLock(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := open(t, b)
	first, second := installation.LockKey(b.config.Schema, b.config.Prefix)
	attempts, err := p.TryAcquire([]tenure.Candidate{{Role: tenure.KeyPairRole(first, second)}})
	if err != nil || attempts[0].Outcome != tenure.Busy {
		t.Errorf("a role with the key of the lock: %v, %v; want it busy", attempts, err)
	}
	if err := p.reconcile(); err != nil {
		t.Fatal(err)
	}
	if !row[bool](t, b, `SELECT NOT pg_try_advisory_lock($1::int, $2::int)`, first, second) {
		t.Fatal("the lock is free while a session lives")
	}
	for range 8 {
		p.beat()
	}
	if _, err := p.conn.Exec(context.Background(), `SELECT pg_advisory_unlock_shared($1::int, $2::int)`, first, second); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		if _, err = p.Heartbeat(tenure.Load{}); err != nil {
			break
		}
	}
	if !errors.Is(err, tenure.ErrSuperseded) {
		t.Errorf("without the lock: %v; want ErrSuperseded", err)
	}
}
