package sidecar

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/testkit"
)

// accepting accepts connections of a listener until that is closed.
func accepting(t *testing.T, listener net.Listener) <-chan *limitedConn {
	t.Helper()
	accepted := make(chan *limitedConn)
	go func() {
		defer close(accepted)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- conn.(*limitedConn)
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		for range accepted { // it may have been closed before
		}
	})
	return accepted
}

// TestConnectionAboveLimitReplacesIdleOne: a connection more than there may be is accepted, and takes
// the place of one that does nothing, of the address that has the most.
func TestConnectionAboveLimitReplacesIdleOne(t *testing.T) {
	t.Parallel()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := limit(inner, 4)
	accepted := accepting(t, listener)
	dial := func(from byte) *limitedConn {
		t.Helper()
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, from)}}
		conn, err := dialer.DialContext(t.Context(), "tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return <-accepted
	}
	closed := func(c *limitedConn) bool {
		listener.mu.Lock()
		defer listener.mu.Unlock()
		return c.place == nil
	}
	single, busy, first, second := dial(1), dial(2), dial(2), dial(2)
	busy.count(1)
	dial(3)
	if !closed(first) || closed(single) || closed(busy) || closed(second) {
		t.Fatal("another connection was closed than the oldest idle one of the address with the most")
	}
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection is still open: %v", err)
	}
	single.count(1)
	second.count(1)
	third := dial(4) // 3 is the only idle one
	third.count(1)
	dial(5)
	if !closed(busy) || closed(second) || closed(single) || closed(third) {
		t.Error("where all are busy, not the oldest of the address with the most was closed")
	}
	for range 2 {
		_ = second.Close() // a second close gives nothing back
	}
	dial(6)
	if closed(single) || closed(third) {
		t.Error("a place was free")
	}
	if listener.open != 4 || len(listener.origins) != 4 {
		t.Errorf("%d connections of %d addresses", listener.open, len(listener.origins))
	}
}

// hostileConnections is more than the server takes.
const hostileConnections = 5000

// TestHealthAnswersUnderHostileConnections: clients that open streams, send headers slowly
// or nothing at all, and come back when they are closed, keep no client from asking
// for the node's health. A supervisor would kill a leader that does not answer.
func TestHealthAnswersUnderHostileConnections(t *testing.T) {
	pgtest.Long(t)
	h := newHandler(t, Config{})
	listener, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if needed := hostileConnections + maxConnections + 500; descriptors() < needed {
		t.Fatalf("the test needs %d descriptors and may have %d: raise the limit (ulimit -n)", needed, descriptors())
	}
	stop := serveOn(t, listener, h, nil)
	address := listener.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	var opened atomic.Int64
	for i := range hostileConnections {
		group.Go(func() { attack(ctx, address, i, &opened) })
	}
	awaitCount(t, "hostile connections", hostileConnections, opened.Load)
	var all []time.Duration
	closed := map[string]bool{} // the last check of a path was closed without an answer
	for i := range 30 {
		for _, path := range []string{"/healthz", "/readyz"} {
			began := time.Now()
			client := http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
			response, err := client.Get("http://" + address + path)
			took := time.Since(began)
			if err != nil && closed[path] {
				t.Fatalf("%s, round %d, twice in a row: %v after %v", path, i, err, took)
			}
			closed[path] = err != nil
			if err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
			all = append(all, took)
		}
	}
	slices.Sort(all)
	median, longest := all[len(all)/2], all[len(all)-1]
	t.Logf("answered within %v, half of the time %v; %d streams are open", longest, median, h.streams.Open())
	// A busy machine delays single answers, or closes a check from the address of the
	// hostile clients when more of them have come before it was read; a supervisor asks
	// again.
	if median > 5*time.Second {
		t.Errorf("the health checks were answered within %v, half of the time %v", longest, median)
	}
	if streams := h.streams.Open(); streams > eachStreams {
		t.Errorf("one address has %d streams", streams)
	}
	cancel()
	group.Wait()
	stop()
}

// attack keeps one connection open that does harm, and opens another one when the
// server closes it.
func attack(ctx context.Context, address string, i int, opened *atomic.Int64) {
	var dialer net.Dialer
	for counted := false; ctx.Err() == nil; {
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			continue
		}
		if !counted {
			counted = true
			opened.Add(1)
		}
		done := context.AfterFunc(ctx, func() { _ = conn.Close() })
		switch i % 3 {
		case 0: // nothing
		case 1:
			_, _ = io.WriteString(conn, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		case 2:
			_, _ = fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-%d: ", i)
		}
		_, _ = io.Copy(io.Discard, bufio.NewReader(conn)) // until it is closed
		done()
		_ = conn.Close()
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(500+i%1000) * time.Millisecond): // as fast as many machines together would
		}
	}
}

// awaitCount waits until a count is at least as large.
func awaitCount(t *testing.T, what string, want int64, count func() int64) {
	t.Helper()
	testkit.AwaitWithin(t, time.Minute, fmt.Sprint(want, " ", what), func() bool { return count() >= want })
}
