// Package tcpproxy forwards TCP connections to the leader of a role.
package tcpproxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/leaderwatch"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// Server forwards connections to the leader reported by a watch.
type Server struct {
	Watch   *leaderwatch.Watch
	Address func(tenure.Leader) string // where a leader accepts connections
	Wait    time.Duration              // how long a connection waits for a leader that accepts it
	Grace   time.Duration              // how long connections may continue when the server ends
	Log     *slog.Logger
}

// Serve forwards the connections of a listener until ctx ends, and then waits for
// the open ones for at most Grace. It closes the listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	defer listener.Close()
	connCtx, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	var open sync.WaitGroup
	for {
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() == nil {
				cut()
				open.Wait()
				return err
			}
			break
		}
		open.Go(func() { s.handle(connCtx, conn) }) // exits when the connection ends; Serve waits through open
	}
	defer time.AfterFunc(s.Grace, cut).Stop()
	open.Wait()
	return nil
}

// handle forwards one connection. The end of a term resets it: no client must take its
// end for the end of an answer.
func (s *Server) handle(ctx context.Context, client net.Conn) {
	defer client.Close()
	leadership, server, err := s.connect(ctx)
	if err != nil {
		s.Log.Warn("a connection could not be forwarded to the leader", "client", client.RemoteAddr().String(), "error", err)
		reset(client)
		return
	}
	defer server.Close()
	end := func() { reset(client); reset(server) }
	defer context.AfterFunc(leadership.Context(), end)()
	defer context.AfterFunc(ctx, end)()
	var copying sync.WaitGroup
	copying.Go(func() { forward(server, client, end, func(error) {}) })
	forward(client, server, end, func(err error) { hold(leadership.Context(), err) })
	copying.Wait()
}

// The kernel still accepts connections for a dying process after it has closed others. A
// client could lose a second request to it. So the end of a connection to the leader is
// held back for this long, or until the term ends.
const (
	holdEnd   = 50 * time.Millisecond
	holdReset = 250 * time.Millisecond
)

// hold waits after a connection to the leader has ended with err.
func hold(leading context.Context, err error) {
	limit := holdEnd
	if err != nil {
		limit = holdReset
	}
	wakeup.Sleep(leading, limit)
}

// forward copies one direction. When it has ended, it calls ended, and then passes
// the end on; an error resets both connections.
func forward(to, from net.Conn, end func(), ended func(error)) {
	_, err := io.Copy(to, from)
	ended(err)
	if err != nil {
		end()
		return
	}
	if tcp, ok := to.(interface{ CloseWrite() error }); !ok || tcp.CloseWrite() != nil {
		end()
	}
}

// reset closes a connection: its peer sees an error.
func reset(conn net.Conn) {
	if tcp, ok := conn.(interface{ SetLinger(int) error }); ok {
		_ = tcp.SetLinger(0) // if it fails, the connection has ended already
	}
	_ = conn.Close()
}

// The bounds of the time between two attempts to connect, and of one attempt.
const (
	minPause    = 10 * time.Millisecond
	maxPause    = 320 * time.Millisecond
	dialTimeout = 2 * time.Second
)

// connect connects to the leader. Nothing was sent yet, so it tries again until
// Wait has passed, also with the next leader.
func (s *Server) connect(ctx context.Context) (*leaderwatch.Leadership, net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Wait)
	defer cancel()
	reason := tenure.ErrNoLeader
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		leadership, err := s.Watch.Next(ctx)
		if err != nil {
			return nil, nil, errors.Join(reason, err)
		}
		dialer := net.Dialer{Timeout: dialTimeout}
		conn, err := dialer.DialContext(ctx, "tcp", s.Address(s.Watch.Leader(leadership)))
		if err == nil {
			return leadership, conn, nil
		}
		reason = err
		wakeup.Await(ctx, pause, leadership.Context().Done())
	}
}
