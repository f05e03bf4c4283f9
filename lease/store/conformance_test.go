package store_test

import (
	"database/sql"
	"log/slog"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // registers "pgx"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/lease"
	"github.com/exactly-one/tenure/lease/leasetest"
	"github.com/exactly-one/tenure/lease/store"
)

func TestStoreConformance(t *testing.T) {
	t.Parallel()
	leasetest.RunStore(t, func(t *testing.T, window time.Duration) leasetest.Store {
		db, err := sql.Open("pgx", pgtest.Shared(t).Database(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		s, err := store.New(db, lease.PostgreSQL, store.Config{Window: window, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}
