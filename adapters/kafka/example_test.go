package kafka_test

import (
	"crypto/tls"
	"fmt"
	"log"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/exactly-one/tenure/adapters/kafka"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/outbox"
	"github.com/exactly-one/tenure/postgres"
)

func Example() {
	db, err := postgres.New("postgres://app@db.example.com/shop", postgres.Config{})
	if err != nil {
		log.Fatal(err)
	}
	publisher, err := kafka.New(kafka.Config{
		Brokers: []string{"kafka-1.example.com:9093"},
		KeyTag:  "order", // the events of one order keep their order
		Options: []kgo.Opt{kgo.DialTLSConfig(&tls.Config{MinVersion: tls.VersionTLS12})},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer publisher.Close()
	processors, err := outbox.Processors(outbox.Topic{
		Name: "orders", Log: eventstore.New(db, eventstore.Config{}).Log(), Publishers: []outbox.Publisher{publisher},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range processors {
		fmt.Println(p.Name) // and group.Add(p), to run it where outbox.Role() is led
	}
	// Output: orders/kafka
}
