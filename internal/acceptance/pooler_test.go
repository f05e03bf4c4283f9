package acceptance_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/sandbox"
	"github.com/exactly-one/tenure/postgres"
)

// Behind a pooler session locks protect nothing, in silence. Tenure says so
// instead.
func TestPgBouncerIsRejected(t *testing.T) {
	for _, mode := range []string{"transaction", "statement", "session"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			server := pgtest.Shared(t)
			refused(t, server, server.PgBouncer(t, mode))
		})
	}
}

// A node that is refused behind Pgpool-II is refused after the pooler's death and
// return, too: no new connection and none that the pooler has kept passes.
func TestPgpoolIsRejectedAfterItsRestart(t *testing.T) {
	pgtest.Long(t)
	for _, mode := range []string{"raw", "slony", "streaming_replication", "logical_replication", "native_replication", "snapshot_isolation"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			server := pgtest.Start(t, pgtest.Options{})
			relay := server.Pgpool(t, pgtest.PgpoolOptions{Mode: mode})
			refused(t, server, relay)
			relay.Kill(t)
			relay.Start(t)
			refused(t, server, relay)
			if err := relay.Signal(sandbox.PauseSignal); err != nil {
				t.Fatal(err)
			}
			if err := relay.Signal(sandbox.ResumeSignal); err != nil {
				t.Fatal(err)
			}
			refused(t, server, relay)
			if value[bool](t, server.Conn(t), "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory')") {
				t.Error("a session of a node that was refused holds a lock")
			}
		})
	}
}

// refused opens a node through a pooler and wants a refusal that says what to do.
func refused(t *testing.T, server *pgtest.Server, relay *pgtest.Relay) {
	t.Helper()
	db, err := postgres.New(relay.DSN(server.DSN()), postgres.Config{Schema: server.Schema(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	begun := time.Now()
	node, err := tenure.Open(ctx, db, tenure.Config{Logger: logTo(t)})
	if node != nil {
		t.Error("a node was opened")
		_ = node.Close(ctx)
	}
	if !errors.Is(err, dberr.ErrPooled) || !errors.Is(err, tenure.ErrRefused) {
		t.Fatalf("%v; want it refused with ErrPooled", err)
	}
	if !strings.Contains(err.Error(), "Connect directly to PostgreSQL") {
		t.Errorf("%q does not say what to do", err)
	}
	if took := time.Since(begun); took > patience/2 {
		t.Errorf("a refusal was tried again for %v", took)
	}
}
