package grpchealth_test

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/adapters/grpchealth"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/tenuretest"
)

// pausedClock is the clock of a process that was paused: the time is later, and no timer
// has fired yet.
type pausedClock struct {
	clocks.Clock
	paused atomic.Int64 // nanoseconds
}

func (c *pausedClock) Now() clocks.Instant {
	return c.Clock.Now().Add(time.Duration(c.paused.Load()))
}

// A leader that was paused for longer than its lease does not serve, although the timer
// that ends its term is late.
func TestPausedLeaderDoesNotServe(t *testing.T) {
	t.Parallel()
	clock := &pausedClock{Clock: clocks.System()}
	node := postgrestest.OpenNode(t, tenuretest.NewDatabase(), tenure.Config{
		Name: "a", Lease: time.Minute, CheckInterval: 15 * time.Second, Clock: clock, Logger: slog.New(slog.DiscardHandler),
	})
	election, err := node.Election(tenure.NamedRole(role))
	if err != nil {
		t.Fatal(err)
	}
	server, err := grpchealth.New(election)
	if err != nil {
		t.Fatal(err)
	}
	if err := election.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	term, err := election.WaitForLeadership(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	statuses := func() [2]healthpb.HealthCheckResponse_ServingStatus {
		t.Helper()
		one, err := server.Check(t.Context(), &healthpb.HealthCheckRequest{Service: role})
		if err != nil {
			t.Fatal(err)
		}
		list, err := server.List(t.Context(), &healthpb.HealthListRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return [2]healthpb.HealthCheckResponse_ServingStatus{one.GetStatus(), list.GetStatuses()[role].GetStatus()}
	}
	for statuses()[0] != serving {
		if !term.Valid() {
			t.Fatal("the term ended")
		}
	}
	clock.paused.Store(int64(time.Hour))
	if got := statuses(); got[0] != notServing || got[1] != notServing {
		t.Errorf("the statuses are %v after the pause; want NOT_SERVING", got)
	}
	clock.paused.Store(0)
}
