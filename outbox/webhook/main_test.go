package webhook_test

import (
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/outboxtest"
	"github.com/exactly-one/tenure/outbox"
	"github.com/exactly-one/tenure/outbox/webhook"
)

func TestMain(m *testing.M) { outboxtest.Main(m, open) }

// open opens a publisher for a target of the form "format secret URL".
func open(target string) (outbox.Publisher, func(), error) {
	parts := strings.Fields(target)
	secret, err := webhook.ParseSecret(parts[1])
	if err != nil {
		return nil, nil, err
	}
	p, err := webhook.New(webhook.Config{
		Name: "hook", URL: parts[2], Source: "/shop", Secrets: []webhook.Secret{secret}, Format: webhook.Format(parts[0]),
	})
	if err != nil {
		return nil, nil, err
	}
	return p, p.Close, nil
}
