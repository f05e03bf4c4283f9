// Package reach makes a leader give its role up when the connections of its work cannot
// reach the database, although its session can: another node may reach it.
package reach

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// giveUpAfter is how long the connections may fail before the leader gives up.
	giveUpAfter = 10 * time.Second
	// probeTimeout bounds the wait for a connection and the answer on it.
	probeTimeout = 3 * time.Second
)

// Database runs statements on the connections of the work.
type Database interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Watch records since when the connections fail. It is not safe for concurrent use.
type Watch struct {
	Database Database

	since time.Time // the begin of the first failed step; zero after a success
}

// Worked records a successful step.
func (w *Watch) Worked() { w.since = time.Time{} }

// Failed probes the database after a failed step. If it could not be reached since
// giveUpAfter, Failed returns an error: the leader should give up.
func (w *Watch) Failed(ctx context.Context, began time.Time) error {
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, err := w.Database.Exec(limited, "SELECT 1")
	switch {
	case err == nil || ctx.Err() != nil:
		w.Worked()
		return nil
	case w.since.IsZero():
		w.since = began
	}
	if time.Since(w.since) < giveUpAfter {
		return nil
	}
	return fmt.Errorf("the work of the role cannot reach the database, although the session can: %w", err)
}
