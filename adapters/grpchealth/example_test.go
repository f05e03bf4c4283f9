package grpchealth_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/adapters/grpchealth"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// The service "billing" of the gRPC server is SERVING while this process leads the role.
func ExampleServer() {
	dsn := pgtest.ExampleDatabase() // in a program: os.Getenv("DATABASE_URL")
	if err := serve(context.Background(), dsn); err != nil {
		log.Fatal(err)
	}
	// Output: billing is SERVING
}

func serve(ctx context.Context, dsn string) error {
	db, err := postgres.New(dsn, postgres.Config{})
	if err != nil {
		return err
	}
	defer db.Close()
	node, err := tenure.Open(ctx, db, tenure.Config{Name: "api-1", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer node.Close(context.WithoutCancel(ctx))
	election, err := node.Election(tenure.NamedRole("billing"))
	if err != nil {
		return err
	}
	roles, err := grpchealth.New(election)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, roles)
	defer server.Stop()    // in a program: GracefulStop
	defer roles.Shutdown() // clients leave before the server stops
	if err := election.Start(ctx); err != nil {
		return err
	}
	return report(ctx, election, roles) // in a program: server.Serve(listener)
}

// report prints the status of the role when this process leads.
func report(ctx context.Context, election *tenure.Election, roles *grpchealth.Server) error {
	if _, err := election.WaitForLeadership(ctx); err != nil {
		return err
	}
	for {
		response, err := roles.Check(ctx, &healthpb.HealthCheckRequest{Service: "billing"})
		if err != nil || response.GetStatus() == healthpb.HealthCheckResponse_SERVING {
			fmt.Println("billing is", response.GetStatus())
			return err
		}
	}
}
