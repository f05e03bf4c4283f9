// Package grpchealth serves gRPC's health service, in which a role is SERVING only on
// the node that leads it. Clients that check the health of their servers, load
// balancers and probes then reach the leader and no standby.
//
//	roles, err := grpchealth.New(election)
//	…
//	healthpb.RegisterHealthServer(server, roles)
//
// The name of the service is the name of the role. The service "" is the whole server,
// which serves as leader and as standby.
package grpchealth
