package leaderhttp_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/leaderhttp"
)

// firstRead is a body that says when it is read first.
type firstRead struct {
	io.ReadCloser
	once  sync.Once
	begun chan<- struct{} // closed then
}

func (f *firstRead) Read(p []byte) (int, error) {
	f.once.Do(func() { close(f.begun) })
	return f.ReadCloser.Read(p)
}

// heldRead is a body whose first part arrives only after a connection was reset.
type heldRead struct {
	io.ReadCloser
	once  sync.Once
	begun chan<- struct{} // closed with the first read
	reset <-chan struct{}
}

func (h *heldRead) Read(p []byte) (int, error) {
	h.once.Do(func() { close(h.begun) })
	<-h.reset
	return h.ReadCloser.Read(p)
}

// A node that becomes the leader itself, after the last leader has reset a connection
// before anything of a request was sent, serves the request with all of its body.
func TestNextLeaderServesWholeBodyItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	last := w.election("leader", tenure.Description{})
	if err := last.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	resetting, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resetting.Close() })
	b := w.serve("b", leaderhttp.Config{Address: func(tenure.Leader) string { return resetting.Addr().String() }}, nil)
	reading, reset := make(chan struct{}), make(chan struct{})
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		req.Body = &heldRead{ReadCloser: req.Body, begun: reading, reset: reset}
		b.server.Config.Handler.ServeHTTP(w, req)
	}))
	front.EnableHTTP2 = true
	front.StartTLS()
	t.Cleanup(front.Close)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, front.URL, io.MultiReader(strings.NewReader("all of it")))
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	go func() {
		answer, err := front.Client().Do(request)
		if err != nil {
			got <- err.Error()
			return
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		got <- string(body)
	}()
	conn, err := resetting.Accept()
	if err != nil {
		t.Fatal(err)
	}
	<-reading
	_ = conn.(*net.TCPConn).SetLinger(0) // it is only about how the connection ends
	conn.Close()
	resetting.Close()
	close(reset)
	if err := last.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.lead(b)
	if answer := <-got; !strings.HasPrefix(answer, "b ") || !strings.HasSuffix(answer, " all of it") {
		t.Errorf("the answer is %q, want that of b with the whole body", answer)
	}
}

// The leader resets a connection before anything of a request was sent, and the client
// sends the body only when the next leader has the request: that leader gets all of it.
func TestLateBodyReachesNextLeaderWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.election("leader", tenure.Description{}).Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	resetting, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resetting.Close() })
	reading := make(chan struct{})
	go func() { // exits with the connection, or when the listener is closed
		if conn, err := resetting.Accept(); err == nil {
			<-reading
			_ = conn.(*net.TCPConn).SetLinger(0) // it is only about how the connection ends
			conn.Close()
		}
	}()
	arrived, got := make(chan struct{}), make(chan string, 1)
	next := newServer(t, http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		close(arrived)
		body, _ := io.ReadAll(req.Body)
		got <- string(body)
	}))
	var attempts atomic.Int64
	proxy, err := leaderhttp.NewProxy(t.Context(), w.db, billing, leaderhttp.Config{
		Logger: slog.New(slog.DiscardHandler),
		Address: func(tenure.Leader) string {
			if attempts.Add(1) == 1 {
				return resetting.Addr().String()
			}
			return strings.TrimPrefix(next, "http://")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		req.Body = &firstRead{ReadCloser: req.Body, begun: reading}
		proxy.ServeHTTP(w, req)
	}))
	front.EnableHTTP2 = true // whose requests can have a body of unknown length and no header that says so
	front.StartTLS()
	t.Cleanup(front.Close)

	body, write := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, front.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		answer, err := front.Client().Do(request)
		if err == nil {
			err = answer.Body.Close()
		}
		done <- err
	}()
	testkit.Receive(t, arrived, patience, "the next leader gets no request")
	const text = "all of it"
	if _, err := io.WriteString(write, text); err != nil {
		t.Fatal(err)
	}
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	if body := <-got; body != text {
		t.Errorf("the next leader gets the body %q, want %q", body, text)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
