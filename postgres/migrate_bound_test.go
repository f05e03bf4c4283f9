package postgres

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres/internal/install"
)

// A session that has to migrate first extends its time limit and restores it;
// the next session does not extend it.
func TestMigrationHasSeparateTimeLimit(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	open := func() (extended []time.Duration) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		s, err := b.Open(ctx, tenure.SessionOptions{
			Node:        tenure.NodeInfo{ID: uuid.New(), Name: "slow", Host: "localhost"},
			Description: tenure.Description{Status: tenure.StatusActive},
			Timing:      timing(), Clock: testClock, Logger: slog.New(slog.NewTextHandler(logWriter{t}, nil)),
			MaySend: func() bool { return true },
			Extend:  func(d time.Duration) { extended = append(extended, d) },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Abort)
		return extended
	}
	// The first one waits for others that create the tables, too.
	if extended := open(); len(extended) == 0 || slices.Max(extended) != install.MigrationTimeout || extended[len(extended)-1] != 0 {
		t.Errorf("a migration extended its time by %v, want at most %v, and none at the end", extended, install.MigrationTimeout)
	}
	b.installation.Core = additive(`ALTER TABLE {terms} ADD COLUMN trial integer`)
	if extended := slices.Compact(open()); !slices.Equal(extended, []time.Duration{0, install.MigrationTimeout, 0}) {
		t.Errorf("the next migration extended its time by %v", extended)
	}
	if extended := slices.Compact(open()); !slices.Equal(extended, []time.Duration{0}) { // with each answer
		t.Errorf("without a migration the time was extended by %v", extended)
	}
}
