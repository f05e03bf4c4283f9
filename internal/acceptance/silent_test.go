package acceptance_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
)

// silent connects a node that can fall silent as a process that was stopped
// does: what it sends goes nowhere, what it is sent is not read, and the server
// never hears of an end. Unless it returns, it makes no new connections then.
type silent struct {
	mu      sync.Mutex
	conns   []*silentConn
	session *silentConn
	mute    bool
	returns bool                      // new connections are made all the same: only the network of the old ones failed
	final   func(query []byte) []byte // makes of the session's next statement the last that it sends
	spoken  chan struct{}             // closed when that is sent
}

func newSilent(t *testing.T) *silent {
	s := &silent{spoken: make(chan struct{})}
	t.Cleanup(func() { // after the node has been closed
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, conn := range s.conns {
			_ = conn.Conn.Close() // some are closed already
		}
	})
	return s
}

var errSilent = errors.New("the process is stopped")

// connect is the connect function of the node.
func (s *silent) connect(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	s.mu.Lock()
	refuse := s.mute && !s.returns
	s.mu.Unlock()
	if refuse {
		return nil, errSilent
	}
	dial := config.DialFunc
	session := strings.HasSuffix(config.RuntimeParams["application_name"], " session")
	config.DialFunc = func(ctx context.Context, kind, address string) (net.Conn, error) {
		network, err := dial(ctx, kind, address)
		if err != nil {
			return nil, err
		}
		if err := network.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			return nil, err
		}
		conn := &silentConn{Conn: network, silent: s, hung: make(chan struct{})}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.conns = append(s.conns, conn)
		if session {
			s.session = conn
		}
		return conn, nil
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err == nil && session {
		s.mu.Lock()
		s.session.pid = conn.PgConn().PID()
		s.mu.Unlock()
	}
	return conn, err
}

// pid is the process id of the session's backend.
func (s *silent) pid(t *testing.T) uint32 {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session.pid == 0 {
		t.Fatal("there is no session")
	}
	return s.session.pid
}

// fallSilent makes the session's next statement, changed in this way, the last
// bytes that the node sends, and returns when they are sent.
func (s *silent) fallSilent(final func(query []byte) []byte) {
	s.mu.Lock()
	s.final = final
	s.mu.Unlock()
	<-s.spoken
}

// What the last statement becomes.

func nothing([]byte) []byte { return nil }

func last(query []byte) []byte { return query }

// withoutSync takes the Sync message off its end.
func withoutSync(query []byte) []byte {
	ending, _ := (&pgproto3.Sync{}).Encode(nil) // it has nothing that could fail
	return bytes.TrimSuffix(query, ending)
}

// instead sends another statement.
func instead(t *testing.T, sql string) func([]byte) []byte {
	t.Helper()
	query, err := (&pgproto3.Query{String: sql}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	return func([]byte) []byte { return query }
}

// silentConn is one of the node's connections.
type silentConn struct {
	net.Conn
	silent *silent
	pid    uint32
	mute   bool // under the mutex of silent

	once sync.Once
	hung chan struct{} // closed when the node closes it
}

// Write sends, unless the node is silent.
func (c *silentConn) Write(data []byte) (int, error) {
	s := c.silent
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c.mute:
	case c == s.session && s.final != nil:
		final := s.final
		s.mute, s.final = true, nil
		if _, err := c.Conn.Write(final(data)); err != nil {
			return 0, err
		}
		// Readers that wait for the network now wait for the end instead.
		for _, conn := range s.conns {
			conn.mute = true
			_ = conn.Conn.SetReadDeadline(time.Unix(1, 0))
		}
		close(s.spoken)
	default:
		return c.Conn.Write(data)
	}
	return len(data), nil
}

// Read receives, unless the node is silent; then it waits until it is closed.
func (c *silentConn) Read(buffer []byte) (int, error) {
	if !c.muted() {
		n, err := c.Conn.Read(buffer)
		if !c.muted() {
			return n, err
		}
	}
	<-c.hung
	return 0, net.ErrClosed
}

func (c *silentConn) muted() bool {
	c.silent.mu.Lock()
	defer c.silent.mu.Unlock()
	return c.mute
}

// SetReadDeadline and SetDeadline are for the network only, so that no deadline
// of the driver undoes the silence.
func (c *silentConn) SetReadDeadline(t time.Time) error {
	c.silent.mu.Lock()
	defer c.silent.mu.Unlock()
	if c.mute {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *silentConn) SetDeadline(t time.Time) error {
	c.silent.mu.Lock()
	defer c.silent.mu.Unlock()
	if c.mute {
		return nil
	}
	return c.Conn.SetDeadline(t)
}

// Close closes the connection, but a silent node's only from its own side.
func (c *silentConn) Close() error {
	c.once.Do(func() { close(c.hung) })
	if c.muted() {
		return nil
	}
	return c.Conn.Close()
}
