package grpchealth

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/exactly-one/tenure"
)

// Server is gRPC's health server, with a service for each role. Such a service is
// SERVING while the node leads the role and trusts its term, and otherwise
// NOT_SERVING. It is safe for concurrent use.
type Server struct {
	health *health.Server
	roles  map[string]*tenure.Election

	mu    sync.Mutex
	terms map[string]*tenure.Term // whose end is awaited; guarded by mu
}

var _ healthpb.HealthServer = (*Server)(nil)

// New returns a server for the roles of some elections. The caller starts and stops the
// elections. The error matches tenure.ErrInvalidConfig if two elections have the same
// role.
func New(elections ...*tenure.Election) (*Server, error) {
	s := &Server{health: health.NewServer(), roles: map[string]*tenure.Election{}, terms: map[string]*tenure.Term{}}
	for _, election := range elections {
		role := election.Role().Name()
		if s.roles[role] != nil {
			return nil, fmt.Errorf("%w: two elections have the role %s: serve the health of one node", tenure.ErrInvalidConfig, role)
		}
		s.roles[role] = election
	}
	for role, election := range s.roles {
		update := func() { s.update(role, election) }
		election.OnEvent(func(tenure.Event) { update() })
		update()
	}
	return s, nil
}

// update sets the status of a role, and again when its present term ends.
func (s *Server) update(role string, election *tenure.Election) {
	s.mu.Lock()
	defer s.mu.Unlock()
	term := election.Term()
	if term == nil {
		s.health.SetServingStatus(role, healthpb.HealthCheckResponse_NOT_SERVING)
		return
	}
	s.health.SetServingStatus(role, healthpb.HealthCheckResponse_SERVING)
	if s.terms[role] == term {
		return
	}
	s.terms[role] = term
	context.AfterFunc(term.Context(), func() { s.update(role, election) })
}

// SetServingStatus sets the status of a service other than a role, such as "" for the
// whole server, by default SERVING. It has no effect on a role.
func (s *Server) SetServingStatus(service string, status healthpb.HealthCheckResponse_ServingStatus) {
	if s.roles[service] == nil {
		s.health.SetServingStatus(service, status)
	}
}

// Shutdown sets all services to NOT_SERVING for good. Call it before the gRPC server
// stops, so that clients leave.
func (s *Server) Shutdown() { s.health.Shutdown() }

// Check returns the status of a service. For a role it asks the node's clocks: after a
// pause of the process, the timer for the end of the term can be late.
func (s *Server) Check(ctx context.Context, request *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	response, err := s.health.Check(ctx, request)
	if err == nil {
		s.correct(request.GetService(), response)
	}
	return response, err
}

// List returns the statuses of all services, as Check does.
func (s *Server) List(ctx context.Context, request *healthpb.HealthListRequest) (*healthpb.HealthListResponse, error) {
	response, err := s.health.List(ctx, request)
	if err == nil {
		for service, status := range response.GetStatuses() {
			s.correct(service, status)
		}
	}
	return response, err
}

// correct changes the status of a role after the end of its term.
func (s *Server) correct(service string, response *healthpb.HealthCheckResponse) {
	if election := s.roles[service]; election != nil && !election.IsLeader() {
		response.Status = healthpb.HealthCheckResponse_NOT_SERVING
	}
}

// Watch sends the status of a service, and then each change of it. It returns when the
// client leaves or the gRPC server stops.
func (s *Server) Watch(request *healthpb.HealthCheckRequest, stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	return s.health.Watch(request, stream)
}
