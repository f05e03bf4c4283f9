package pgtest

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/sandbox"
)

// ExampleDatabase creates a database on the shared server and returns the
// superuser's connection string to it. It is for examples, which have no test that
// could fail: it panics if there is no server. The database goes with the server.
func ExampleDatabase() string {
	server, err := shared()
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, server.DSN())
	if err != nil {
		panic(err)
	}
	defer conn.Close(ctx)
	name := sandbox.UniqueName("example")
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+quote(name)); err != nil {
		panic(fmt.Errorf("create a database for an example: %w", err))
	}
	return server.DSNFor("postgres", name)
}
