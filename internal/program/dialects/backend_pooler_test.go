package dialects

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/lease"
	"github.com/exactly-one/tenure/lease/store"
)

// A pooler in statement mode has no transactions, so a node does not open and the error says
// why. All other tests also run on PgBouncer in transaction mode.
func TestBackendRefusesStatementPooling(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	source := server.PgBouncer(t, "statement").DSN(server.Database(t)) + "&default_query_exec_mode=exec"
	backend := newBackend(t, kinds[0].connect(t, source), lease.PostgreSQL, lease.Config{})
	node, err := tenure.Open(soon(t), backend, tenure.Config{}) // refused, so that it is not tried again
	if err == nil {
		_ = node.Close(soon(t))
		t.Fatal("a node was opened")
	}
	if !errors.Is(err, dberr.ErrPooled) || !strings.Contains(err.Error(), "pool_mode") {
		t.Errorf("%v; want ErrPooled, with the pool_mode to use", err)
	}
	findings := backend.Diagnose(soon(t))
	if !slices.ContainsFunc(findings, func(f doctor.Finding) bool {
		return f.Severity == doctor.Failure && strings.Contains(f.Detail, "pool_mode")
	}) {
		t.Errorf("%+v; want a failure that names the pool_mode to use", findings)
	}
}

// Pgpool-II in raw mode does not commit statements, so two nodes would lead.
func TestBackendRefusesRawPgpool(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	for mode, refused := range map[string]bool{
		"raw": true, "slony": true, "streaming_replication": false,
		"native_replication": false, "snapshot_isolation": false, "logical_replication": false,
	} {
		source := server.Pgpool(t, pgtest.PgpoolOptions{Mode: mode, NewConnections: true}).DSN(server.Database(t)) + "&default_query_exec_mode=exec"
		pool := kinds[0].connect(t, source)
		backend := newBackend(t, pool, lease.PostgreSQL, lease.Config{})
		node, err := tenure.Open(soon(t), backend, tenure.Config{})
		if err == nil {
			_ = node.Close(soon(t))
		}
		if refused != errors.Is(err, dberr.ErrPooled) || refused == (err == nil) {
			t.Errorf("a node, mode %s: %v; want ErrPooled: %t", mode, err, refused)
		}
		failed := slices.ContainsFunc(backend.Diagnose(t.Context()), func(f doctor.Finding) bool { return f.Severity == doctor.Failure })
		if failed != refused {
			t.Errorf("the diagnosis, mode %s: failed %t", mode, failed)
		}
		elections, err := store.New(pool, lease.PostgreSQL, store.Config{})
		if err == nil {
			err = elections.Migrate(t.Context())
		}
		if refused != errors.Is(err, dberr.ErrPooled) || refused == (err == nil) {
			t.Errorf("a store, mode %s: %v; want ErrPooled: %t", mode, err, refused)
		}
	}
}
