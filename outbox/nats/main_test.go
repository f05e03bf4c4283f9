package nats_test

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/exactly-one/tenure/internal/outboxtest"
	"github.com/exactly-one/tenure/outbox"
	outboxnats "github.com/exactly-one/tenure/outbox/nats"
)

func TestMain(m *testing.M) { outboxtest.Main(m, open) }

// open opens a publisher for the URL of a server.
func open(target string) (outbox.Publisher, func(), error) {
	conn, err := nats.Connect(target)
	if err != nil {
		return nil, nil, err
	}
	p, err := outboxnats.New(conn, outboxnats.Config{})
	return p, conn.Close, err
}
