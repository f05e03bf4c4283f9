// Package grpchealth serves gRPC's health service. A role is SERVING only on the node
// that leads it. So clients with a health check of their servers, load balancers and
// probes reach the leader and no standby.
//
//	roles, err := grpchealth.New(election)
//	…
//	healthpb.RegisterHealthServer(server, roles)
//
// The name of the service is the name of the role. The service "" is the whole server,
// which serves as leader and as standby.
package grpchealth
