package grpchealth_test

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/adapters/grpchealth"
	"github.com/exactly-one/tenure/internal/postgrestest"
)

// However the leader is replaced, its clients and those of the next leader learn of it,
// and the former leader does not serve when the next term begins.
func TestOnlyTheLeaderServes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lease   time.Duration
		replace func(leader *replica) error
	}{
		"step-down":            {patient, func(leader *replica) error { return leader.election.StepDown(leader.t.Context()) }},
		"shutdown":             {patient, func(leader *replica) error { return leader.election.Shutdown(leader.t.Context()) }},
		"closed node":          {patient, func(leader *replica) error { return leader.node.Close(leader.t.Context()) }},
		"unreachable database": {10 * time.Second, func(leader *replica) error { leader.proxy.Stall(); return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := postgrestest.New(t)
			a, b := newReplica(t, i, "a", c.lease), newReplica(t, i, "b", patient)
			ofA, ofB := a.watch(), b.watch()
			ofA.next(notServing)
			ofB.next(notServing)
			a.start()
			ofA.next(serving)
			former := make(chan healthpb.HealthCheckResponse_ServingStatus, 1)
			b.election.OnAcquired(func(*tenure.Term) {
				response, err := a.health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: role})
				if err != nil {
					t.Error(err)
				}
				former <- response.GetStatus()
			})
			b.start()
			i.AwaitWatched(a.node.ID())
			if err := c.replace(a); err != nil {
				t.Fatal(err)
			}
			ofA.next(notServing)
			ofB.next(serving)
			if got := <-former; got != notServing {
				t.Errorf("the former leader is %v when the next term begins; want NOT_SERVING", got)
			}
			if got := [2]healthpb.HealthCheckResponse_ServingStatus{a.check(role), b.check(role)}; got != [2]healthpb.HealthCheckResponse_ServingStatus{notServing, serving} {
				t.Errorf("the replicas are %v; want the second one SERVING", got)
			}
			if got := a.check(""); got != serving {
				t.Errorf("the server of the former leader is %v; want SERVING", got)
			}
			a.proxy.Resume()
		})
	}
}

// A leader whose server session is terminated leads again, and its service returns.
func TestServiceReturnsWithTheNextTerm(t *testing.T) {
	t.Parallel()
	i := postgrestest.New(t)
	r := newReplica(t, i, "a", patient)
	statuses := r.watch()
	statuses.next(notServing)
	r.start()
	for range 3 {
		statuses.next(serving)
		i.Exec(`SELECT pg_terminate_backend(pid) FROM {nodes} WHERE id = $1`, r.node.ID())
		statuses.next(notServing)
	}
}

func TestShutdownIsFinal(t *testing.T) {
	t.Parallel()
	r := newReplica(t, postgrestest.New(t), "a", patient)
	statuses := r.watch()
	statuses.next(notServing)
	r.start()
	statuses.next(serving)
	r.health.Shutdown()
	statuses.next(notServing)
	if err := r.election.StepDown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.election.WaitForLeadership(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.check(role); got != notServing {
		t.Errorf("the role is %v after Shutdown; want NOT_SERVING", got)
	}
}

func TestOtherServicesKeepTheirStatus(t *testing.T) {
	t.Parallel()
	r := newReplica(t, postgrestest.New(t), "a", patient)
	r.health.SetServingStatus("billing.v1.Ledger", serving)
	r.health.SetServingStatus(role, serving)
	list, err := r.client.List(t.Context(), &healthpb.HealthListRequest{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]healthpb.HealthCheckResponse_ServingStatus{"": serving, "billing.v1.Ledger": serving, role: notServing}
	for service, status := range want {
		if got := list.GetStatuses()[service].GetStatus(); got != status || r.check(service) != status {
			t.Errorf("%q is %v in the list and %v alone; want %v", service, got, r.check(service), status)
		}
	}
	_, err = r.client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: "unknown"})
	if status.Code(err) != codes.NotFound {
		t.Errorf("an unknown service: %v; want NotFound", err)
	}
}

func TestNewRefusesARoleOfTwoNodes(t *testing.T) {
	t.Parallel()
	i := postgrestest.New(t)
	a, b := newReplica(t, i, "a", patient), newReplica(t, i, "b", patient)
	if _, err := grpchealth.New(a.election, b.election); !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Errorf("%v; want ErrInvalidConfig", err)
	}
}
