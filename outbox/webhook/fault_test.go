package webhook_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/exactly-one/tenure/internal/outboxtest"
	"github.com/exactly-one/tenure/outbox/webhook"
)

// receiver verifies requests and records their events.
type receiver struct {
	*httptest.Server
	secret     webhook.Secret
	mu         sync.Mutex
	deliveries []outboxtest.Delivery
}

func newReceiver(t *testing.T) (r *receiver, secret string) {
	t.Helper()
	r = &receiver{}
	r.secret, secret = webhook.NewSecret()
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return // its sender was interrupted
		}
		if err := webhook.Verify(request.Header, body, r.secret); err != nil {
			t.Error(err)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		events, err := decode(request, body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, event := range events {
			d, err := outboxtest.FromHeaders(func(name string) string { return attribute(event, name) }, "")
			if err != nil {
				t.Error(err)
			}
			r.deliveries = append(r.deliveries, d)
		}
	}))
	t.Cleanup(r.Close)
	return r, secret
}

func (r *receiver) all() []outboxtest.Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.deliveries)
}

func TestFaultsLoseNoMessage(t *testing.T) {
	for _, format := range []webhook.Format{webhook.Batched, webhook.Binary} {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			r, secret := newReceiver(t)
			outboxtest.Run(t, outboxtest.Options{Target: string(format) + " " + secret + " " + r.URL, Deliveries: r.all})
		})
	}
}
