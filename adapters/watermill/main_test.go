package watermill_test

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/exactly-one/tenure/adapters/watermill"
	"github.com/exactly-one/tenure/internal/outboxtest"
	"github.com/exactly-one/tenure/outbox"
)

func TestMain(m *testing.M) { outboxtest.Main(m, open) }

// open opens a publisher for the URL of a broker.
func open(target string) (outbox.Publisher, func(), error) {
	broker := &httpPublisher{target, &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}}}
	p, err := watermill.New(broker, watermill.Config{Name: "broker"})
	return p, func() { _ = broker.Close() }, err
}

// httpPublisher is a publisher of Watermill that sends messages over HTTP.
type httpPublisher struct {
	url    string
	client *http.Client
}

func (p *httpPublisher) Publish(topic string, messages ...*message.Message) error {
	for _, m := range messages {
		request, err := http.NewRequestWithContext(m.Context(), http.MethodPost, p.url+"/"+topic, bytes.NewReader(m.Payload))
		if err != nil {
			return err
		}
		for name, value := range m.Metadata {
			request.Header.Set(name, value)
		}
		response, err := p.client.Do(request)
		if err != nil {
			return err
		}
		if err := response.Body.Close(); err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("the broker answered %s", response.Status)
		}
	}
	return nil
}

func (p *httpPublisher) Close() error {
	p.client.CloseIdleConnections()
	return nil
}
