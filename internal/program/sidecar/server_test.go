package sidecar

import (
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure/internal/feed"
)

// TestServeReturnsErrorOfListener: a listener that fails ends serving with its error.
func TestServeReturnsErrorOfListener(t *testing.T) {
	t.Parallel()
	h := newHandler(t, Config{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Serve(t.Context(), listener, h, nil); err == nil || !strings.Contains(err.Error(), listener.Addr().String()) {
		t.Errorf("it ended with %v", err)
	}
}

// TestStopDoesNotWaitForever: a client that takes nothing delays the end for a
// bounded time.
func TestStopDoesNotWaitForever(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, Config{})
		client, _, stop := serveInMemory(t, h)
		follow(t, client, inMemory, "")
		publish(h, 1, feed.MaxRetained, 900)
		synctest.Wait()
		begun := time.Now()
		stop()
		if waited := time.Since(begun); waited < stopTimeout || waited > stopTimeout+time.Second {
			t.Errorf("it ended after %v", waited)
		}
		if h.streams.Open() != 0 {
			t.Error("a stream continues")
		}
	})
}
