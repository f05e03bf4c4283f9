//go:build linux

package agent_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent"
	"github.com/exactly-one/tenure/agent/server"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/tenuretest"
)

var errBusy = errors.New("the database answered with an error")

// busyWhilePending is a database whose sessions answer each attempt to continue a
// pending term with an error.
type busyWhilePending struct{ *tenuretest.Database }

func (b busyWhilePending) Open(ctx context.Context, options tenure.SessionOptions) (tenure.Session, error) {
	inner, err := b.Database.Open(ctx, options)
	return &busySession{Session: inner}, err
}

type busySession struct {
	tenure.Session
	pending bool
}

func (s *busySession) TryAcquire(requests []tenure.AcquireRequest) ([]tenure.AcquireResult, error) {
	if s.pending {
		return nil, errBusy
	}
	results, err := s.Session.TryAcquire(requests)
	for _, r := range results {
		s.pending = s.pending || r.Outcome == tenure.OutcomePending
	}
	return results, err
}

// A node gives up a role whose term is pending because the database answered with an
// error. The agent's session still holds the lock: it must be released, although the
// node stays connected (Invariant 7).
func TestPendingRoleIsReleasedAfterError(t *testing.T) {
	t.Parallel()
	db, role := tenuretest.NewDatabase(), tenure.NamedRole("r")
	crashed, err := db.Open(t.Context(), options("crashed"))
	if err != nil {
		t.Fatal(err)
	}
	awaitGranted(t, crashed, role.Name())
	crashed.Abort() // the next term has to settle
	path := startAgent(t, server.Config{
		Backend: busyWhilePending{db}, Timing: tenure.Timing{Lease: time.Minute, RefreshInterval: time.Second, Settle: time.Hour},
	})
	node, err := tenure.Open(t.Context(), agent.New(path), tenure.Config{
		Lease: time.Minute, RefreshInterval: 10 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer postgrestest.Close(t, node)
	election, err := node.ElectionWith(role, tenure.ElectionConfig{NoReacquire: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := election.TryAcquire(t.Context()); err == nil || !errors.Is(err, tenure.ErrTenure) {
		t.Fatalf("error %v, want that of the database", err)
	}
	other, err := db.Open(t.Context(), options("other"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Abort()
	if got := tryOnce(t, other, role.Name()); got.Outcome != tenure.OutcomeGranted {
		t.Errorf("invariant 7: a role for which no node campaigns: %+v, want OutcomeGranted", got)
	}
}
