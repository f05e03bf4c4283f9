package dialects

import (
	"database/sql"
	"log/slog"
	"testing"
	"time"

	"github.com/exactly-one/tenure/lease"
	"github.com/exactly-one/tenure/lease/leasetest"
)

// newStore makes a store on a database.
func newStore(t testing.TB, k kind, db *sql.DB, window time.Duration) *lease.Store {
	t.Helper()
	store, err := lease.NewStore(db, k.dialect, lease.StoreConfig{Window: window, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestStore(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			leasetest.RunStore(t, func(t *testing.T, window time.Duration) leasetest.Store {
				return newStore(t, k, k.open(t), window)
			})
		})
	}
}
