package server

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure/agent/internal/wire"
)

// A heartbeat whose answer comes after the end of trust extends nothing, although no
// goroutine has looked since: the process was stopped.
func TestEndedTrustIsNotRevived(t *testing.T) {
	t.Parallel()
	window := trust{now: wire.Now}
	if !window.extend(wire.Now().Add(time.Minute)) || !window.valid() {
		t.Fatal("trust does not begin with an acknowledged heartbeat")
	}
	end := wire.Now().Add(10 * time.Millisecond)
	window.extend(end)
	for wire.Now() < end {
		time.Sleep(time.Millisecond)
	}
	if window.extend(wire.Now().Add(time.Minute)) || window.valid() || window.maySend() {
		t.Error("invariant 1: trust that has ended was revived")
	}
}
