package nats_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	outboxnats "github.com/exactly-one/tenure/adapters/nats"
	"github.com/exactly-one/tenure/internal/outboxtest"
	"github.com/exactly-one/tenure/outbox"
)

func TestMain(m *testing.M) { outboxtest.Main(m, open) }

// open opens a publisher for the URL of a server, with the prefix "shared " for a shared
// stream.
func open(target string) (outbox.Publisher, func(), error) {
	url, shared := strings.CutPrefix(target, "shared ")
	conn, err := nats.Connect(url)
	if err != nil {
		return nil, nil, err
	}
	p, err := outboxnats.New(conn, outboxnats.Config{SharedStream: shared})
	return p, conn.Close, err
}
