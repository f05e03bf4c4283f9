package dialects

import (
	"database/sql"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/sessiontest"
	"github.com/exactly-one/tenure/lease"
)

// newBackend returns a backend on a database, closed when the test ends.
func newBackend(t testing.TB, db *sql.DB, dialect lease.Dialect, config lease.Config) *lease.Backend {
	t.Helper()
	backend, err := lease.NewBackend(db, dialect, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(backend.Close)
	return backend
}

func TestBackendConformance(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			sessiontest.Run(t, func(t *testing.T) tenure.Backend {
				return newBackend(t, kind.open(t), kind.dialect, lease.Config{})
			}, sessiontest.UniqueNames, sessiontest.Offers, sessiontest.LeaderNames)
		})
	}
}
