package cluster_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/exactly-one/tenure/cluster"
)

// serve serves a handler that counts its requests as a member's work in flight.
func (n node) serve(next http.HandlerFunc) *httptest.Server {
	server := httptest.NewServer(n.InFlight().Handler(next))
	n.t.Cleanup(server.Close)
	return server
}

// answer is a client's response.
type answer struct {
	status     int
	retryAfter string
	closed     bool // the connection, by the server
}

func get(t testing.TB, url string) (answer, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(within(t), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	return answer{response.StatusCode, response.Header.Get("Retry-After"), response.Close}, nil
}

func TestHandlerRefusesWhileDraining(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	b := site.join("b", cluster.Config{})
	site.join("a", cluster.Config{})
	entered, leave := make(chan struct{}), make(chan struct{})
	server := b.serve(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(entered)
			<-leave
		}
		_, _ = io.WriteString(w, "done")
	})
	slow := start(func() error {
		got, err := get(t, server.URL+"/slow")
		if err == nil && got.status != http.StatusOK {
			t.Errorf("the request in flight got %d", got.status)
		}
		return err
	})
	<-entered
	drained := start(func() error { return b.Drain(within(t)) })
	b.seesStatus(b.ID(), cluster.Draining)
	got, err := get(t, server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if got.status != http.StatusServiceUnavailable || got.retryAfter == "" || !got.closed {
		t.Errorf("while draining: %+v", got)
	}
	if b.InFlight().Count() != 1 {
		t.Errorf("%d requests in flight; want 1", b.InFlight().Count())
	}
	close(leave)
	if err := result(t, slow); err != nil {
		t.Error(err)
	}
	if err := result(t, drained); err != nil {
		t.Error(err)
	}
	if err := b.Undrain(within(t)); err != nil {
		t.Fatal(err)
	}
	if got, err := get(t, server.URL); err != nil || got.status != http.StatusOK {
		t.Errorf("after Undrain: %+v, %v", got, err)
	}
}

// A request counts until its handler has returned, however it does, and the
// handler gets the server's own writer.
func TestHandlerCountsUntilItReturns(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, w http.ResponseWriter){
		"stream": func(t *testing.T, w http.ResponseWriter) {
			control := http.NewResponseController(w)
			if err := control.SetWriteDeadline(time.Now().Add(patience)); err != nil {
				t.Errorf("SetWriteDeadline: %v", err)
			}
			_, _ = io.WriteString(w, "x")
			if err := control.Flush(); err != nil {
				t.Errorf("Flush: %v", err)
			}
		},
		"hijack": func(t *testing.T, w http.ResponseWriter) {
			connection, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Errorf("Hijack: %v", err)
				return
			}
			_, _ = io.WriteString(connection, "HTTP/1.1 204 No Content\r\n\r\n")
			_ = connection.Close()
		},
		"panic": func(*testing.T, http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var flight cluster.InFlight
			counted, returned := make(chan int, 1), make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(returned)
				flight.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					defer func() { counted <- flight.Count() }()
					end(t, w)
				})).ServeHTTP(w, r)
			}))
			defer server.Close()
			connection, err := new(net.Dialer).DialContext(within(t), "tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = connection.Close() }()
			_, _ = io.WriteString(connection, "GET / HTTP/1.1\r\nHost: test\r\n\r\n")
			_, _ = bufio.NewReader(connection).ReadString('\n') // the panic answers nothing
			if n := <-counted; n != 1 {
				t.Errorf("%d in flight while the handler ran; want 1", n)
			}
			<-returned
			if n := flight.Count(); n != 0 {
				t.Errorf("%d in flight at the end; want 0", n)
			}
		})
	}
}
