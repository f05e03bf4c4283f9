package watermill_test

import (
	"fmt"
	"log"

	wm "github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/exactly-one/tenure/adapters/watermill"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/outbox"
	"github.com/exactly-one/tenure/postgres"
)

func Example() {
	db, err := postgres.New("postgres://app@db.example.com/shop", postgres.Config{})
	if err != nil {
		log.Fatal(err)
	}
	broker := gochannel.NewGoChannel(gochannel.Config{}, wm.NopLogger{}) // any publisher of Watermill
	defer func() { _ = broker.Close() }()
	publisher, err := watermill.New(broker, watermill.Config{Name: "broker"})
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
	// Output: orders/broker
}
