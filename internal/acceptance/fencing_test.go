package acceptance_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/sandbox"
	"github.com/exactly-one/tenure/postgres"
)

// A leader's process is stopped in the middle of a fenced transaction. The next
// term begins all the same, and the old one commits nothing.
func TestTransactionOfStoppedLeaderDoesNotCommit(t *testing.T) {
	t.Parallel()
	for kind, test := range map[string]struct {
		bound time.Duration
		says  string // the error of the commit
	}{
		childWrites: {bound: lease + margin, says: "fenced"},
		childFenced: {bound: lease + margin + time.Second, says: "57P01"}, // the fence timeout on top; its backend is ended
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.migrate()
			admin := pgtest.Conn(t, c.dsn)
			execute(t, admin, "CREATE TABLE "+pgx.Identifier{c.schema, "ledger"}.Sanitize()+" (term bigint)")
			old := c.spawn(kind, order{DSN: c.dsn, Schema: c.schema, Name: "old", Lease: lease, Roles: 1})
			writing := old.await("writing", time.Time{})
			next := c.join("next")

			stopped := time.Now()
			old.signal(sandbox.PauseSignal)
			term, _ := next.leadsWithin(test.bound, stopped)
			if term.Number() <= writing.Term {
				t.Errorf("Invariant 2: term %d came after term %d", term.Number(), writing.Term)
			}
			old.say("continue")
			resumed := time.Now()
			old.signal(sandbox.ResumeSignal)

			committed := old.await("committed", resumed)
			if committed.Lead {
				t.Error("the old leader said that it leads at its first look")
			}
			if !strings.Contains(committed.Error, test.says) {
				t.Errorf("the old transaction ended with %q; want an error with %q", committed.Error, test.says)
			}
			if gap := old.await("gap", resumed); gap.Lead {
				t.Error("the old leader said that it leads at the first look of another goroutine")
			}
			if rows := value[int](t, admin, "SELECT count(*) FROM "+pgx.Identifier{c.schema, "ledger"}.Sanitize()); rows != 0 {
				t.Errorf("Invariant 3: %d writes of the old term were committed", rows)
			}
		})
	}
}

// Fenced transactions and heartbeats write different rows.
func TestFencedTransactionsAndHeartbeatsDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	leader := c.join("leader")
	term := leader.leads()
	pool := pgtest.Pool(t, c.dsn)
	quick := func(what string, do func(context.Context) error) {
		t.Helper()
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := do(ctx); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if took := time.Since(begun); took > slack { // the server itself ends a heartbeat after lease/6
			t.Errorf("%s took %v", what, took)
		}
	}
	err := postgres.InTx(t.Context(), pool, term, func(tx pgx.Tx) error {
		if err := postgres.Fence(t.Context(), tx, term); err != nil {
			return err
		}
		for range 20 {
			quick("a heartbeat beside a fenced transaction", leader.election.Refresh)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	// The row of a heartbeat that has not committed is locked as this one is.
	beat := begin(t, c.dsn)
	execute(t, beat, "UPDATE "+c.quoted("nodes")+" SET last_heartbeat = last_heartbeat WHERE id = $1", leader.ID())
	quick("a fenced transaction beside a heartbeat", func(ctx context.Context) error {
		return postgres.InTx(ctx, pool, term, func(pgx.Tx) error { return nil })
	})
	execute(t, beat, "ROLLBACK")
	if !term.Valid() {
		t.Error("the term has ended")
	}
}

// The lock timeout may be as short as the fence timeout: an attempt lasts until
// the transactions are ended that delay it, so a node leads.
func TestRoleIsLedWithShortestLockTimeout(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	const fenceTimeout = 1500 * time.Millisecond
	c.config.FenceTimeout, c.config.LockTimeout = fenceTimeout, fenceTimeout
	leader := c.join("leader")
	term := leader.leads()
	rival := c.join("rival")
	tx := begin(t, c.dsn)
	execute(t, tx, "SELECT FROM "+c.quoted("terms")+" WHERE role = $1 AND term = $2 FOR KEY SHARE", role, term.Number())

	since := time.Now()
	if err := leader.election.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, took := rival.leadsWithin(fenceTimeout+checkInterval, since); took > 2*fenceTimeout {
		t.Errorf("Invariant 7: the next node led %v after the shutdown; the transaction in the way must be terminated after %v", took, fenceTimeout)
	}
	if err := tx.Ping(t.Context()); err == nil {
		t.Error("the transaction of the old term was not ended")
	}
}
