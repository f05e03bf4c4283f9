package sidecar

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/testkit"
)

// TestUnreadStreamsCostLittleMemory: 1,000 clients that do not read cost little memory and delay no other client.
// When they read at last, each gets a clear last event.
func TestUnreadStreamsCostLittleMemory(t *testing.T) {
	pgtest.Long(t)
	const crowd, events, size = 1000, 4000, 900
	h := newHandler(t, Config{})
	h.stall = 10 * time.Minute // a busy machine must not cut those who would be dropped
	listener, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stop := serveOn(t, listener, h, nil)
	address := listener.Addr().String()

	before := memory()
	slow := make([]net.Conn, crowd)
	for i := range slow {
		slow[i] = dialSlowly(t, address, i/eachStreams)
	}
	awaitStreams(t, h, crowd)
	connected := memory()

	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	reading := follow(t, &http.Client{Transport: transport}, "http://"+address, "")
	var longest time.Duration
	for i := 1; i <= events; i++ {
		published := time.Now()
		publish(h, i, i, size)
		if got := number(t, reading.expect(t, kindElection)); got != i {
			t.Fatalf("the client that reads sees %d instead of %d", got, i)
		}
		longest = max(longest, time.Since(published))
	}
	stalled := memory()
	t.Logf("%d slow clients: %.1f MB connected, %.1f MB after %d events (%.1f MB) that they did not read; another client got each within %v",
		crowd, megabytes(connected-before), megabytes(stalled-before), events, megabytes(events*size), longest)
	if grown := megabytes(stalled - before); grown > 80 { // the clients' side is in it
		t.Errorf("%.1f MB are used for them", grown)
	}
	if longest > 5*time.Second {
		t.Errorf("the client that reads waited %v", longest)
	}

	var group sync.WaitGroup
	for _, conn := range slow {
		group.Go(func() {
			if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Error(err)
			}
			text, err := io.ReadAll(conn)
			if err != nil || !strings.Contains(string(text[max(0, len(text)-300):]), "event: dropped\ndata: {\"message\":\"too slow") {
				t.Errorf("the last of %d bytes (%v) are %q", len(text), err, text[max(0, len(text)-300):])
			}
			_ = conn.Close() // it is read to its end
		})
	}
	group.Wait()
	reading.close()
	awaitStreams(t, h, 0)
	stop()
}

// dialSlowly follows the events on a connection that takes little, asks to have
// it closed at the end, and reads the greeting only.
func dialSlowly(t *testing.T, address string, from int) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(from))}}
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReaderSize(conn, 16).ReadString('\n'); err != nil || !strings.Contains(line, "200 OK") {
		t.Fatalf("%q: %v", line, err)
	}
	return conn
}

// awaitStreams waits until a number of clients follow.
func awaitStreams(t *testing.T, h *Handler, want int) {
	t.Helper()
	testkit.Await(t, fmt.Sprintf("%d clients follow", want), func() bool { return h.streams.Open() == want })
}

// memory is what the process uses, of the heap and of stacks, in bytes.
func memory() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}

func megabytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }
