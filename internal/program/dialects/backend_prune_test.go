package dialects

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/lease"
)

// hasty is a clock on which the first long wait ends immediately and later ones never end.
type hasty struct {
	clocks.Clock
	waited *atomic.Bool
}

func (h hasty) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	switch {
	case d < time.Minute:
		return h.Clock.AfterFunc(d, f)
	case h.waited.CompareAndSwap(false, true):
		return h.Clock.AfterFunc(0, f)
	}
	return func() bool { return true }
}

// prunes opens a session that prunes the history immediately.
func prunes(t *testing.T, backend *lease.Backend, log slog.Handler) {
	t.Helper()
	session, err := backend.Open(soon(t), tenure.SessionOptions{
		Node:   tenure.NodeInfo{ID: uuid.New(), Name: "node", Host: "localhost"},
		Timing: tenure.Timing{Lease: time.Minute, RefreshInterval: 20 * time.Second},
		Clock:  hasty{clocks.System(), &atomic.Bool{}}, Logger: slog.New(log), MaySend: func() bool { return true },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Abort)
}

// remember adds terms that ended some time ago to the history.
func remember(t *testing.T, db *sql.DB, role string, terms int, ago time.Duration) {
	t.Helper()
	at := time.Now().Add(-ago).UnixMicro()
	rows := make([]string, terms)
	for i := range rows {
		rows[i] = fmt.Sprintf("('%s', %d, '%s', 'gone', %d, %d, 'resigned', 0)", role, i+1, uuid.Nil, at-1, at)
	}
	execute(t, db, "INSERT INTO "+lease.DefaultPrefix+"history (role, term, node_id, node_name, began_at, ended_at, end_reason, vacant_us) VALUES "+
		strings.Join(rows, ", "))
}

const countHistory = "SELECT count(*) FROM " + lease.DefaultPrefix + "history"

// All old terms are removed, and others stay.
func TestBackendPrunesOldTerms(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		db := k.open(t)
		if err := newBackend(t, db, k.dialect, lease.Config{}).Migrate(soon(t)); err != nil {
			t.Fatal(err)
		}
		remember(t, db, "old", 250, lease.DefaultKeepHistory+time.Hour)
		remember(t, db, "young", 3, lease.DefaultKeepHistory-time.Hour)
		prunes(t, newBackend(t, db, k.dialect, lease.Config{KeepHistory: -1}), slog.DiscardHandler)
		prunes(t, newBackend(t, db, k.dialect, lease.Config{}), slog.DiscardHandler)
		testkit.Await(t, "the old terms are gone", func() bool { return value(t, db, countHistory) == "3" })
		if left := value(t, db, countHistory+" WHERE role = 'young'"); left != "3" {
			t.Errorf("%s young terms are left", left)
		}
		backend := newBackend(t, db, k.dialect, lease.Config{KeepHistory: 24 * time.Hour})
		prunes(t, backend, slog.DiscardHandler)
		testkit.Await(t, "none is left", func() bool { return value(t, db, countHistory) == "0" })
		backend.Close() // does not wait for the session, which waits for an hour
	})
}

// warned counts warnings in the log.
type warned struct {
	slog.Handler
	times *atomic.Int32
}

func (w warned) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		w.times.Add(1)
	}
	return nil
}

func (w warned) Enabled(context.Context, slog.Level) bool { return true }

// Without the privilege to delete, a node logs a warning and continues.
func TestBackendPrunesWithPrivilegesOfNodes(t *testing.T) {
	t.Parallel()
	onRestricted(t, func(t *testing.T, r restricted) {
		owned := newBackend(t, r.owner, r.kind.dialect, lease.Config{})
		if err := owned.Migrate(soon(t)); err != nil {
			t.Fatal(err)
		}
		r.grant(t, owned.NodeGrants)
		remember(t, r.owner, "old", 1, lease.DefaultKeepHistory+time.Hour)
		backend := newBackend(t, r.kind.connect(t, r.source), r.kind.dialect, lease.Config{})
		prunes(t, backend, slog.DiscardHandler)
		testkit.Await(t, "the old term is gone", func() bool { return value(t, r.owner, countHistory) == "0" })

		granted, err := owned.NodeGrants(r.user)
		if err != nil {
			t.Fatal(err)
		}
		for statement := range strings.SplitSeq(granted, ";\n") {
			if strings.Contains(statement, "history") {
				revoke := strings.Replace(statement, "SELECT, INSERT, DELETE ON", "DELETE ON", 1)
				execute(t, r.owner, strings.Replace(strings.Replace(revoke, "GRANT", "REVOKE", 1), " TO ", " FROM ", 1))
			}
		}
		remember(t, r.owner, "old", 1, lease.DefaultKeepHistory+time.Hour)
		log := warned{slog.DiscardHandler, &atomic.Int32{}}
		prunes(t, backend, log)
		testkit.Await(t, "it is said", func() bool { return log.times.Load() == 1 })
		if left := value(t, r.owner, countHistory); left != "1" {
			t.Errorf("%s old terms are left", left)
		}
	})
}
