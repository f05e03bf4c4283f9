package sidecar

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
)

// TestStreamsOfAllAddressesAreLimited: a node has 1,024 streams. One more is refused,
// whatever its address.
func TestStreamsOfAllAddressesAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, Config{})
		from := func(address int) *http.Request {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/events", http.NoBody)
			r.Host, r.RemoteAddr = "localhost", fmt.Sprintf("192.0.2.%d:1234", address)
			return r
		}
		for i := range 1024 {
			go h.ServeHTTP(httptest.NewRecorder(), from(i/256)) // exits with the test's context
		}
		synctest.Wait()
		if got := h.streams.Open(); got != 1024 {
			t.Fatalf("%d streams are open, want 1024 from four addresses", got)
		}
		again := httptest.NewRecorder()
		refused := make(chan struct{})
		go func() {
			defer close(refused)
			h.ServeHTTP(again, from(200))
		}()
		synctest.Wait()
		select {
		case <-refused:
		default:
			t.Fatal("stream 1025 was accepted, want 503")
		}
		if again.Code != http.StatusServiceUnavailable {
			t.Errorf("stream 1025 was answered with %d, want 503", again.Code)
		}
	})
}
