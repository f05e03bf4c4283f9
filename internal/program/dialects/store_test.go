package dialects

import (
	"database/sql"
	"log/slog"
	"testing"
	"time"

	"github.com/exactly-one/tenure/lease/leasetest"
	"github.com/exactly-one/tenure/lease/store"
)

// newStore returns a store with the default prefix.
func newStore(t testing.TB, k kind, db *sql.DB, window time.Duration) *store.Store {
	t.Helper()
	return newStoreAt(t, k, db, window, "")
}

// newStoreAt returns a store whose tables have a prefix.
func newStoreAt(t testing.TB, k kind, db *sql.DB, window time.Duration, prefix string) *store.Store {
	t.Helper()
	s, err := store.New(db, k.dialect, store.Config{Window: window, Prefix: prefix, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStoreConformance(t *testing.T) {
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
