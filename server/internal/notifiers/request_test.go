package notifiers

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/program/notifier"
)

// A receiver that switches protocols, unasked, and sends nothing fails the attempt: the
// end of a context does not end a read of such a connection.
func TestSwitchedProtocolFailsTheAttempt(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { switchProtocol(w) }))
	t.Cleanup(server.Close)
	n := mustOpen(t, Config{Type: notifier.Webhook, URL: server.URL})
	result := make(chan error, 1)
	go func() { result <- n.Send(t.Context(), "", Batch{Alerts: []Alert{firing()}}) }()
	select {
	case err := <-result:
		if err == nil || !strings.Contains(err.Error(), "101") {
			t.Errorf("got %v", err)
		}
	case <-time.After(2 * attemptTimeout):
		t.Error("Send does not return")
	}
}

// switchProtocol answers a request with another protocol, of which it sends nothing.
func switchProtocol(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
	_, _ = io.Copy(io.Discard, conn) // until the client closes it
	_ = conn.Close()
}
