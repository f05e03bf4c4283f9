package leaderhttp_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/leaderhttp"
)

// A client that has sent a part of a body, and waits for the answer, gets its answer
// when the term of the leader ends, or when the connection to the leader breaks.
func TestUnfinishedRequestIsAnswered(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"the term ends", "the connection breaks"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { listener.Close() })
			b := w.serve("b", leaderhttp.Config{Address: func(tenure.Leader) string { return listener.Addr().String() }}, nil)
			leader := w.election("a", tenure.Description{})
			if err := leader.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			client, err := net.Dial("tcp", b.server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { client.Close() })
			if _, err := fmt.Fprint(client, "POST / HTTP/1.1\r\nHost: b\r\nContent-Length: 10\r\n\r\nhello"); err != nil {
				t.Fatal(err)
			}
			conn, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			forwarded, err := http.ReadRequest(bufio.NewReader(conn))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(forwarded.Body, make([]byte, len("hello"))); err != nil {
				t.Fatal(err)
			}
			if what == "the term ends" {
				w.db.Occupy(billing)
			} else if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			if err := client.SetReadDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(client), nil)
			if err != nil {
				t.Fatalf("the client got no answer: %v", err)
			}
			defer answer.Body.Close()
			if answer.StatusCode != http.StatusBadGateway {
				t.Errorf("status %d, want 502", answer.StatusCode)
			}
		})
	}
}
