package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/outbox"
	"github.com/exactly-one/tenure/outbox/webhook"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/processor"
)

func Example() {
	db, err := postgres.New("postgres://app@db.example.com/shop", postgres.Config{})
	if err != nil {
		log.Fatal(err)
	}
	secret, _ := webhook.NewSecret() // usually webhook.ParseSecret, of what the receiver knows
	publisher, err := webhook.New(webhook.Config{
		Name: "billing", URL: "https://billing.example.com/events", Source: "/shop/orders", Secrets: []webhook.Secret{secret},
	})
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
	// Output: orders/billing
}

// A receiver verifies the signature and drops events that it has already applied.
func ExampleVerify() {
	secret, _ := webhook.NewSecret()
	known := map[string]bool{} // in a database, in the transaction that applies the event
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		if err := webhook.Verify(r.Header, body, secret); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		var events []webhook.Event
		if err := json.Unmarshal(body, &events); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for _, event := range events {
			if !known[event.ID] {
				known[event.ID] = true
				fmt.Println(event.Type, string(event.Data))
			}
		}
	}))
	defer receiver.Close()

	publisher, err := webhook.New(webhook.Config{Name: "billing", URL: receiver.URL, Source: "/shop", Secrets: []webhook.Secret{secret}})
	if err != nil {
		log.Fatal(err)
	}
	defer publisher.Close()
	placed := outbox.Message{ID: uuid.New(), Event: processor.Event{Type: "placed", Data: json.RawMessage(`{"order":7}`)}}
	for range 2 { // as after a response that was lost
		if _, err := publisher.Publish(context.Background(), []outbox.Message{placed}); err != nil {
			log.Fatal(err)
		}
	}
	// Output: placed {"order":7}
}
