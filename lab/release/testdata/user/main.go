// Command user is a program of somebody who uses three of the modules.
package main

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/adapters/kafka"
	"github.com/exactly-one/tenure/adapters/tracing"
	"github.com/exactly-one/tenure/outbox"
	"github.com/exactly-one/tenure/postgres"
)

var _ outbox.Publisher = (*kafka.Publisher)(nil)

func lead(ctx context.Context, dsn string) error {
	db, err := postgres.New(dsn, postgres.Config{})
	if err != nil {
		return err
	}
	node, err := tenure.Open(ctx, db, tenure.Config{})
	if err != nil {
		return err
	}
	election, err := node.Election(tenure.NamedRole("billing"))
	if err != nil {
		return errors.Join(err, node.Close(ctx))
	}
	tracing.Trace(election, noop.NewTracerProvider())
	return errors.Join(election.Start(ctx), node.Close(ctx))
}

func main() {
	_, err := kafka.New(kafka.Config{})
	fmt.Println("kafka without brokers is refused:", err != nil)
	fmt.Println("no database is refused:", lead(context.Background(), "postgres://127.0.0.1:1/x?connect_timeout=-") != nil)
}
