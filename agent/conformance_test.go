//go:build linux

package agent_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent"
	"github.com/exactly-one/tenure/agent/server"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/sessiontest"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/tenuretest"
)

// The features of the registry do not apply: nodes of an agent have no rows in
// the registry, since each would need a heartbeat to the database.
func TestAgentConformsToBackend(t *testing.T) {
	t.Parallel()
	t.Run("in memory", func(t *testing.T) {
		sessiontest.Run(t, func(t *testing.T) tenure.Backend {
			return &lateAgent{t: t, inner: tenuretest.NewDatabase()}
		})
	})
	t.Run("on PostgreSQL", func(t *testing.T) {
		pgtest.Long(t)
		db := pgtest.Shared(t)
		sessiontest.Run(t, func(t *testing.T) tenure.Backend {
			return &lateAgent{t: t, inner: backend(t, db.Database(t), "")}
		})
	})
}

func backend(t testing.TB, dsn, schema string) *postgres.Backend {
	t.Helper()
	b, err := postgres.New(dsn, postgres.Config{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// lateAgent is an agent that starts with its first session, whose Settle it has:
// an agent refuses nodes with a longer one.
type lateAgent struct {
	t     *testing.T
	inner tenure.Backend
	once  sync.Once
	tenure.Backend
}

func (l *lateAgent) Open(ctx context.Context, options tenure.SessionOptions) (tenure.Session, error) {
	l.once.Do(func() {
		timing := options.Timing
		timing.Lease, timing.RefreshInterval = 3*time.Minute, time.Minute
		l.Backend = agent.New(startAgent(l.t, server.Config{Backend: l.inner, Timing: timing}))
	})
	return l.Backend.Open(ctx, options)
}

// startAgent runs an agent in this process until the test ends, and returns the
// path of its socket.
func startAgent(t testing.TB, cfg server.Config) string {
	t.Helper()
	cfg.Path = socketPath(t)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	ready := make(chan struct{})
	failed := make(chan struct{})
	stop := postgrestest.Run(t, func(ctx context.Context) error {
		err := server.Run(ctx, cfg, func() { close(ready) })
		if err != nil {
			close(failed)
		}
		return err
	})
	select {
	case <-ready:
	case <-failed:
		stop()
		t.FailNow()
	case <-time.After(patience):
		t.Fatal("the agent is not ready")
	}
	return cfg.Path
}

// socketPath returns a path in a new directory. The path of a socket is
// limited to 107 bytes.
func socketPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // the system cleans up the rest
	return filepath.Join(dir, "socket")
}
