package leaderhttp_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/leaderhttp"
)

// asker is a client that sends its body only after 100 (Continue).
type asker struct {
	net.Conn
	reader *bufio.Reader
}

// ask sends the header of a request with a body of five bytes.
func (w *world) ask(address string) asker {
	w.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		w.Fatal(err)
	}
	if _, err := fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: b\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"); err != nil {
		w.Fatal(err)
	}
	return asker{conn, bufio.NewReader(conn)}
}

// statuses sends the body after the first 100 (Continue), and returns the statuses that
// the client gets, with the body of the answer.
func (a asker) statuses() (all []string, body string) {
	for reader := textproto.NewReader(a.reader); ; {
		line, err := reader.ReadLine()
		if err != nil {
			return append(all, err.Error()), ""
		}
		status := strings.Fields(line + " -")[1]
		all = append(all, status)
		header, err := reader.ReadMIMEHeader()
		if err != nil {
			return append(all, err.Error()), ""
		}
		switch {
		case status != "100":
			answer := make([]byte, len("hello"))
			if header.Get("Content-Length") == fmt.Sprint(len(answer)) {
				_, _ = io.ReadFull(a.reader, answer)
			}
			return all, string(answer)
		case len(all) == 1:
			_, _ = fmt.Fprint(a, "hello")
		}
	}
}

// A client of a node that does not lead gets 100 (Continue) if the leader reads the body,
// once, and not if the leader refuses the request.
func TestClientContinuesAsLeaderSays(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		want   []string
		handle http.HandlerFunc
	}{
		{"refused", []string{"413"}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusRequestEntityTooLarge) }},
		{"read", []string{"100", "200"}, func(w http.ResponseWriter, req *http.Request) {
			body, _ := io.ReadAll(req.Body)
			_, _ = w.Write(body)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.lead(w.serve("a", leaderhttp.Config{}, test.handle))
			b := w.serve("b", leaderhttp.Config{}, nil)
			got, body := w.ask(b.server.Listener.Addr().String()).statuses()
			if !slices.Equal(got, test.want) {
				t.Errorf("the client gets %v, want %v: as the leader says, and once", got, test.want)
			}
			if want := "hello"; test.name == "read" && body != want {
				t.Errorf("the leader got the body %q, want %q", body, want)
			}
		})
	}
}

// A leader that does not know 100 (Continue) gets the body after [leaderhttp.Config].Wait.
// If it says 100 afterwards, the client does not get that again.
func TestLeaderWithoutContinueGetsBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	if err := w.election("a", tenure.Description{}).Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := w.serve("b", leaderhttp.Config{
		Wait: time.Second, Address: func(tenure.Leader) string { return listener.Addr().String() },
	}, nil)
	go func() { // exits with the connection, or when the listener is closed
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		req, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return
		}
		body, _ := io.ReadAll(req.Body)
		fmt.Fprintf(conn, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}()
	got, body := w.ask(b.server.Listener.Addr().String()).statuses()
	if want := []string{"100", "200"}; !slices.Equal(got, want) || body != "hello" {
		t.Errorf("the client gets %v and the body %q, want %v and all of the body", got, body, want)
	}
}
