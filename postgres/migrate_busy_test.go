package postgres

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/schema"
)

// A long transaction, such as a fenced one, delays a migration, but the
// migration does not delay the sessions that come after it.
func TestWaitingMigrationBlocksNoOtherSession(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	b := newBackend(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	before := core.Newest()
	b.installation.Core = additive(`ALTER TABLE {terms} ADD COLUMN trial integer`)
	lasting, other := pgtest.Conn(t, pgtest.Shared(t).DSN()), pgtest.Conn(t, pgtest.Shared(t).DSN())
	if _, err := lasting.Exec(ctx, b.names.SQL(`BEGIN; LOCK TABLE {terms} IN ROW SHARE MODE`)); err != nil {
		t.Fatal(err)
	}
	short, stop := context.WithTimeout(ctx, 500*time.Millisecond)
	defer stop()
	if err := b.Migrate(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("in the time that it had: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- b.Migrate(ctx) }()
	const waits = `SELECT EXISTS (
		SELECT FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock' AND relation = to_regclass($1))`
	awaitWait := func() {
		t.Helper()
		for waiting := false; !waiting; {
			if err := lasting.QueryRow(ctx, waits, b.names.SQL("{terms}")).Scan(&waiting); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 {
		awaitWait()
		if _, err := other.Exec(ctx, b.names.SQL(`UPDATE {terms} SET lease_ms = 1`)); err != nil { // it succeeds after a while
			t.Fatal(err)
		}
	}
	if version, err := b.SchemaVersion(ctx); err != nil || version != before {
		t.Errorf("version %d, %v, while the table is kept", version, err)
	}
	if _, err := lasting.Exec(ctx, `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if version, err := b.SchemaVersion(ctx); err != nil || version != before+1 {
		t.Errorf("version %d, %v, afterwards", version, err)
	}
}

// additive are the migrations of a later program whose schema this program can use.
func additive(up string) *schema.Feature {
	return &schema.Feature{Name: core.Name, Steps: append(slices.Clone(core.Steps), schema.Step{Up: up, UsableFrom: core.Newest()})}
}
