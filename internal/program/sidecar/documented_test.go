package sidecar

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/exactly-one/tenure"
)

// A node has at most 2,048 connections and 1,024 streams, 256 of them from one address.
func TestConnectionsAndStreamsAreLimited(t *testing.T) {
	t.Parallel()
	h := newHandler(t, Config{})
	open := 0
	for address := range 10 {
		before := open
		for range 300 {
			if _, ok := h.streams.Take(fmt.Sprint("192.0.2.", address)); ok {
				open++
			}
		}
		if got := open - before; address < 4 && got != 256 {
			t.Errorf("one address has %d streams, want 256", got)
		}
	}
	if open != 1024 {
		t.Errorf("%d streams are open, want 1024", open)
	}
	for descriptors, want := range map[int]int{1 << 20: 2048, 4096: 2048, 1000: 500} {
		if got := mostConnections(descriptors); got != want {
			t.Errorf("with %d descriptors, there are at most %d connections, want %d", descriptors, got, want)
		}
	}
}

func TestTokenHasAtLeast16Characters(t *testing.T) {
	t.Parallel()
	for length, fits := range map[int]bool{15: false, 16: true} {
		_, err := OpenToken(writeFile(t, "token", strings.Repeat("x", length)), silent)
		if (err == nil) != fits || err != nil && !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("a token of %d characters: %v; want it accepted: %t", length, err, fits)
		}
	}
}
