package nats_test

import (
	"fmt"
	"log"

	"github.com/nats-io/nats.go"

	outboxnats "github.com/exactly-one/tenure/adapters/nats"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/outbox"
	"github.com/exactly-one/tenure/postgres"
)

func Example() {
	db, err := postgres.New("postgres://app@db.example.com/shop", postgres.Config{})
	if err != nil {
		log.Fatal(err)
	}
	// The client keeps trying to connect.
	conn, err := nats.Connect("nats://localhost:1", nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	publisher, err := outboxnats.New(conn, outboxnats.Config{}) // a stream listens to orders.>
	if err != nil {
		log.Fatal(err)
	}
	processors, err := outbox.Processors(outbox.Topic{
		Name: "orders", Log: eventstore.New(db, eventstore.Config{}).Log(), Publishers: []outbox.Publisher{publisher},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range processors {
		fmt.Println(p.Name) // and group.Add(p), to run it where outbox.Role() is led
	}
	// Output: orders/nats
}
