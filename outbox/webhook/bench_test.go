package webhook_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/exactly-one/tenure/outbox/webhook"
)

// BenchmarkPublish measures signed requests of 100 events each to a receiver that
// reads and verifies them.
func BenchmarkPublish(b *testing.B) {
	secret, _ := webhook.NewSecret()
	p, _ := serve(b, webhook.Config{Secrets: []webhook.Secret{secret}}, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = webhook.Verify(r.Header, body, secret)
		}
		if err != nil {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	const batch = 100
	all := messages(batch)
	for b.Loop() {
		if n, err := p.Publish(b.Context(), all); n != batch || err != nil {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(batch*b.N)/b.Elapsed().Seconds(), "events/s")
}
