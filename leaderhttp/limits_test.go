package leaderhttp_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/leaderhttp"
)

// pipeListener accepts one connection in memory, whose deadlines follow the test's clock.
type pipeListener struct {
	conn   chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conn:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipeListener) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// router returns the router of a node with default settings, without a socket.
func (w *world) router(name string) (*tenure.Election, *leaderhttp.Router) {
	w.Helper()
	election := w.election(name, tenure.Description{})
	router, err := leaderhttp.New(w.Context(), election, leaderhttp.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(router.Close)
	return election, router
}

// An answer that a handler still sends when the term ends is cut a quarter of a second
// later.
func TestAnswerIsCutAQuarterOfASecondAfterItsTerm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		election, router := w.router("a")
		if err := election.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := election.WaitForLeadership(t.Context()); err != nil {
			t.Fatal(err)
		}
		entered := make(chan struct{})
		listener := &pipeListener{conn: make(chan net.Conn), closed: make(chan struct{})}
		server := &http.Server{Handler: router.LeaderOnly(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
			close(entered)
			for { // it ignores its context
				if _, err := io.WriteString(out, "x\n"); err != nil || http.NewResponseController(out).Flush() != nil {
					return
				}
			}
		}))}
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		client, far := net.Pipe()
		listener.conn <- far
		if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-entered // the handler blocks in its write, as the client reads nothing
		synctest.Wait()
		w.db.Revoke(billing)
		began := time.Now()
		time.Sleep(249 * time.Millisecond)
		buffer := make([]byte, 1<<10)
		if _, err := client.Read(buffer); err != nil {
			t.Errorf("the answer ended %v after its term, want it to last 250ms: %v", time.Since(began), err)
		}
		for { // slowly, so that the handler never waits for long
			if _, err := client.Read(buffer); err != nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(began); took < 250*time.Millisecond || took > 260*time.Millisecond {
			t.Errorf("the answer was cut %v after its term, want 250ms", took)
		}
		_ = server.Close() // the listener and the connection are in memory
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// Without a leader, a request waits for 10 s, and one that a node forwarded for a second.
// While 1,024 requests wait, another one is refused without a wait.
func TestRequestsWaitForTheDocumentedTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, router := w.router("a")
		handler := router.ForwardToLeader(http.NotFoundHandler())
		ask := func(ctx context.Context, header ...string) (status int, took time.Duration) {
			request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody)
			for _, name := range header {
				request.Header.Set(name, "b")
			}
			answer, began := httptest.NewRecorder(), time.Now()
			handler.ServeHTTP(answer, request)
			return answer.Code, time.Since(began)
		}
		if status, took := ask(t.Context()); status != http.StatusServiceUnavailable || took != 10*time.Second {
			t.Errorf("without a leader: %d after %v, want 503 after 10s", status, took)
		}
		if status, took := ask(t.Context(), leaderhttp.ForwardedHeader); status != http.StatusLoopDetected || took != time.Second {
			t.Errorf("forwarded to a node that does not lead: %d after %v, want 508 after 1s", status, took)
		}
		waiting, end := context.WithCancel(t.Context())
		defer end()
		var group sync.WaitGroup
		for range 1024 {
			group.Go(func() { ask(waiting) })
		}
		synctest.Wait()
		if status, took := ask(t.Context()); status != http.StatusServiceUnavailable || took != 0 {
			t.Errorf("while 1,024 requests wait: %d after %v, want 503 without a wait", status, took)
		}
		end()
		group.Wait()
	})
}
