package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres/internal/server"
)

// With the defaults of the server, elections have room for about 3,200 roles.
func TestHalfOfTheLockTableIsForElections(t *testing.T) {
	t.Parallel()
	if got := (server.LockCapacity{PerTransaction: 64, Transactions: 100}).Usable(); got != 3200 {
		t.Errorf("elections may use %d locks of 6400, want 3200", got)
	}
}

// A session that does not end keeps the installation: a migration gives up after 3 s.
func TestMigrationGivesUpInstallationInUse(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	b := newBackend(t)
	open(t, b, lasting)
	exec(t, b, dropSchema)
	begun := time.Now()
	err := b.Migrate(t.Context())
	if took := time.Since(begun); !errors.Is(err, dberr.ErrInstallationInUse) || took < 3*time.Second || took > 6*time.Second {
		t.Errorf("after %v: %v; want ErrInstallationInUse after 3s", took, err)
	}
}
