package dialects

import (
	"database/sql"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/lease"
)

// A commit whose answer is lost has taken effect. If the session requests the role again,
// it gets the term; otherwise the next heartbeat releases the role.
func TestBackendUnacknowledgedCommitIsResolved(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		source := k.source(t)
		lost := &atomic.Bool{}
		db := sql.OpenDB(tapped{driver: k.connect(t, source).Driver(), source: source, ran: func(ran string) error {
			if ran == "COMMIT" && lost.Load() {
				return io.ErrUnexpectedEOF
			}
			return nil
		}})
		defer db.Close()
		open := func(db *sql.DB) tenure.Session {
			t.Helper()
			session, err := newBackend(t, db, k.dialect, lease.Config{}).Open(soon(t), tenure.SessionOptions{
				Node:   tenure.NodeInfo{ID: uuid.New(), Name: "node", Host: "localhost"},
				Timing: tenure.Timing{Lease: time.Minute, RefreshInterval: 20 * time.Second},
				Clock:  clocks.System(), Logger: slog.New(slog.DiscardHandler), MaySend: func() bool { return true },
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(session.Abort)
			return session
		}
		unlucky, other := open(db), open(k.connect(t, source))
		wanted, unwanted := tenure.AcquireRequest{Role: tenure.NamedRole("wanted")}, tenure.AcquireRequest{Role: tenure.NamedRole("unwanted")}
		both := []tenure.AcquireRequest{wanted, unwanted}
		first := mustTry(t, other, both...) // so that the rows are there
		for _, attempt := range first {
			if attempt.Outcome != tenure.OutcomeGranted {
				t.Fatalf("%+v", attempt)
			}
		}
		release := []tenure.ReleaseRequest{
			{Role: wanted.Role, Term: first[0].Term, Reason: history.EndResigned}, {Role: unwanted.Role, Term: first[1].Term, Reason: history.EndResigned},
		}
		if err := other.Release(release); err != nil {
			t.Fatal(err)
		}

		lost.Store(true)
		if _, err := unlucky.TryAcquire(both); err == nil {
			t.Fatal("no answer was lost")
		}
		lost.Store(false)
		if got := mustTry(t, other, unwanted)[0]; got.Outcome != tenure.OutcomeHeld {
			t.Errorf("the commit has not happened: %+v", got)
		}
		if got := mustTry(t, unlucky, wanted)[0]; got.Outcome != tenure.OutcomeGranted || got.Previous != first[0].Term {
			t.Errorf("asking again: %+v; want the term that has begun after %d", got, first[0].Term)
		}
		if _, err := unlucky.Heartbeat(tenure.Load{}); err != nil {
			t.Fatal(err)
		}
		if got := mustTry(t, other, unwanted)[0]; got.Outcome != tenure.OutcomeGranted || got.Previous <= first[1].Term {
			t.Errorf("the role that was not requested again: %+v; want a term after the unacknowledged one, which followed %d", got, first[1].Term)
		}
		if got := mustTry(t, other, wanted)[0]; got.Outcome != tenure.OutcomeHeld {
			t.Errorf("the role that was asked for again: %+v; want it busy", got)
		}
	})
}

// mustTry calls TryAcquire and fails the test after an error.
func mustTry(t *testing.T, session tenure.Session, candidates ...tenure.AcquireRequest) []tenure.AcquireResult {
	t.Helper()
	attempts, err := session.TryAcquire(candidates)
	if err != nil {
		t.Fatal(err)
	}
	return attempts
}
