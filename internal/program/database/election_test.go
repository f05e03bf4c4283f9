package database

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/mariatest"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/lease"
)

// Every kind of database elects, opened as here: one node leads, keeps its
// seat for longer than a lease, and is followed when it resigns.
func TestEveryDatabaseElects(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]func(t *testing.T) string{
		"SQLite": func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "x.db") },
		"MariaDB": func(t *testing.T) string {
			server := mariatest.Shared(t)
			return server.URL(server.Database(t))
		},
		"PgBouncer": func(t *testing.T) string {
			server := pgtest.Shared(t)
			return server.PgBouncer(t, "transaction").DSN(server.Database(t)) + "&tenure_mode=lease"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := parse(t, dsn(t))
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
			defer cancel()
			first, second := elect(ctx, t, target), elect(ctx, t, target)
			term, err := first.Campaign(ctx)
			if err != nil {
				t.Fatal(err)
			}
			waiting, stop := context.WithTimeout(ctx, 2*testLease)
			defer stop()
			if _, err := second.Campaign(waiting); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("the other node, while the first leads: %v", err)
			}
			if err := term.Context().Err(); err != nil {
				t.Fatalf("the first node's term ended: %v", context.Cause(term.Context()))
			}
			if err := term.Resign(ctx); err != nil {
				t.Fatal(err)
			}
			next, err := second.Campaign(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if next.Number() <= term.Number() {
				t.Errorf("term %d follows term %d", next.Number(), term.Number())
			}
			if err := next.Resign(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

const testLease = 2 * time.Second

// elect opens a separate node on a database, closed with the test, that campaigns
// for one role.
func elect(ctx context.Context, t *testing.T, target *Target) *tenure.Election {
	t.Helper()
	backend, err := lease.NewBackend(open(t, target), target.Dialect(), lease.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(backend.Close)
	node, err := tenure.Open(ctx, backend, tenure.Config{Lease: testLease, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := node.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	election, err := node.Election(tenure.NamedRole("role"))
	if err != nil {
		t.Fatal(err)
	}
	return election
}
