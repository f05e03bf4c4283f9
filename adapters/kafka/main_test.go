package kafka_test

import (
	"testing"

	"github.com/exactly-one/tenure/adapters/kafka"
	"github.com/exactly-one/tenure/internal/outboxtest"
	"github.com/exactly-one/tenure/outbox"
)

func TestMain(m *testing.M) { outboxtest.Main(m, open) }

// open opens a publisher for a broker.
func open(target string) (outbox.Publisher, func(), error) {
	p, err := kafka.New(kafka.Config{Brokers: []string{target}, KeyTag: "stream"})
	if err != nil {
		return nil, nil, err
	}
	return p, p.Close, nil
}
