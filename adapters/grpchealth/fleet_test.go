package grpchealth_test

import (
	"context"
	"net"
	"net/url"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/adapters/grpchealth"
	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/postgres"
)

const role = "billing"

const (
	serving    = healthpb.HealthCheckResponse_SERVING
	notServing = healthpb.HealthCheckResponse_NOT_SERVING
)

// replica is a node with a gRPC server, and a client of that server.
type replica struct {
	t        *testing.T
	proxy    *faultwire.Proxy // between the node and its database
	node     *tenure.Node
	election *tenure.Election
	server   *grpc.Server
	health   *grpchealth.Server
	client   healthpb.HealthClient
}

// patient is a lease that lasts on a busy machine.
const patient = time.Minute

// newReplica starts a replica, whose election is not started yet.
func newReplica(t *testing.T, i *postgrestest.Installation, name string, lease time.Duration) *replica {
	t.Helper()
	r := &replica{t: t}
	r.proxy = startProxy(t, i)
	dsn, err := r.proxy.DSN(i.Server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	backend, err := postgres.New(dsn, postgres.Config{Schema: i.Schema})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(backend.Close)
	r.node = postgrestest.OpenNode(t, backend, tenure.Config{Name: name, Lease: lease})
	if r.election, err = r.node.Election(tenure.NamedRole(role)); err != nil {
		t.Fatal(err)
	}
	if r.health, err = grpchealth.New(r.election); err != nil {
		t.Fatal(err)
	}
	r.serve()
	return r
}

func startProxy(t *testing.T, i *postgrestest.Installation) *faultwire.Proxy {
	t.Helper()
	target, err := url.Parse(i.Server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := faultwire.Start(target.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	return proxy
}

// serve serves the health service on a port, and connects a client to it.
func (r *replica) serve() {
	r.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(r.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	r.server = grpc.NewServer()
	healthpb.RegisterHealthServer(r.server, r.health)
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(listener) }() // exits when the server stops; the cleanup waits
	r.t.Cleanup(func() {
		r.server.Stop()
		if err := <-served; err != nil {
			r.t.Error(err)
		}
	})
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	r.client = healthpb.NewHealthClient(conn)
}

// start starts the election.
func (r *replica) start() {
	r.t.Helper()
	if err := r.election.Start(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// check asks for the status of a service.
func (r *replica) check(service string) healthpb.HealthCheckResponse_ServingStatus {
	r.t.Helper()
	response, err := r.client.Check(r.t.Context(), &healthpb.HealthCheckRequest{Service: service}, grpc.WaitForReady(true))
	if err != nil {
		r.t.Fatal(err)
	}
	return response.GetStatus()
}

// watch watches the role.
func (r *replica) watch() *watch {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*postgrestest.Patience)
	r.t.Cleanup(cancel)
	stream, err := r.client.Watch(ctx, &healthpb.HealthCheckRequest{Service: role}, grpc.WaitForReady(true))
	if err != nil {
		r.t.Fatal(err)
	}
	return &watch{r.t, r.node.Name(), stream}
}

type watch struct {
	t      *testing.T
	name   string
	stream grpc.ServerStreamingClient[healthpb.HealthCheckResponse]
}

// next waits for the next status.
func (w *watch) next(want healthpb.HealthCheckResponse_ServingStatus) {
	w.t.Helper()
	response, err := w.stream.Recv()
	if err != nil {
		w.t.Fatalf("%s: waiting for %v: %v", w.name, want, err)
	}
	if got := response.GetStatus(); got != want {
		w.t.Fatalf("%s is %v; want %v", w.name, got, want)
	}
}
