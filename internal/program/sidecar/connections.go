package sidecar

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"

	"github.com/exactly-one/tenure/internal/httpguard"
)

// limitedListener keeps at most a number of connections open. It accepts every one: a
// health check is never behind a crowd. If there are too many, it closes another one,
// first one without a request in progress, and among these the oldest of the address with
// the most connections.
type limitedListener struct {
	net.Listener
	most int

	mu       sync.Mutex
	open     int
	accepted uint64
	origins  map[string]*origin
}

// origin is an address with its open connections.
type origin struct {
	idle, busy list.List // of *limitedConn, without and with requests in progress
}

func (o *origin) open() int { return o.idle.Len() + o.busy.Len() }

func limit(listener net.Listener, connections int) *limitedListener {
	return &limitedListener{Listener: listener, most: max(connections, 1), origins: map[string]*origin{}}
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok { // a buffer of another size serves too
		_ = tcp.SetReadBuffer(socketBuffer)
		_ = tcp.SetWriteBuffer(socketBuffer)
	}
	accepted := &limitedConn{Conn: conn, listener: l, address: httpguard.Network(conn.RemoteAddr().String())}
	if surplus := l.add(accepted); surplus != nil {
		_ = surplus.Conn.Close() // its handler notices, and closes it again
	}
	return accepted, nil
}

// add adds a connection, and returns another one to close for it, or nil.
func (l *limitedListener) add(c *limitedConn) (surplus *limitedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.most {
		surplus = l.surplusLocked()
		l.dropLocked(surplus)
		surplus.evicted = true
	}
	from := l.origins[c.address]
	if from == nil {
		from = &origin{}
		l.origins[c.address] = from
	}
	l.open++
	l.accepted++
	c.number, c.place = l.accepted, from.idle.PushBack(c)
	return surplus
}

// surplusLocked is the most dispensable connection.
func (l *limitedListener) surplusLocked() *limitedConn {
	var least *limitedConn
	most := 0
	for _, from := range l.origins {
		candidate := from.idle.Front()
		if candidate == nil {
			candidate = from.busy.Front()
		}
		c := candidate.Value.(*limitedConn)
		worse := least != nil && (least.requests == 0 && c.requests > 0)
		better := least == nil || least.requests > 0 && c.requests == 0
		if better || !worse && (from.open() > most || from.open() == most && c.number < least.number) {
			least, most = c, from.open()
		}
	}
	return least
}

// dropLocked forgets a connection, once.
func (l *limitedListener) dropLocked(c *limitedConn) {
	if c.place == nil {
		return
	}
	from := l.origins[c.address]
	from.remove(c)
	c.place = nil
	l.open--
	if from.open() == 0 {
		delete(l.origins, c.address)
	}
}

func (o *origin) remove(c *limitedConn) {
	if c.requests > 0 {
		o.busy.Remove(c.place)
	} else {
		o.idle.Remove(c.place)
	}
}

// limitedConn is a connection known to the listener.
type limitedConn struct {
	net.Conn
	listener *limitedListener
	address  string
	number   uint64 // by age

	// Guarded by listener.mu.
	place    *list.Element // in a list of its origin; nil when it is closed
	requests int           // whose handlers run
	evicted  bool          // closed for another one
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	c.listener.mu.Lock()
	c.listener.dropLocked(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// count notes the begin or the end of requests.
func (c *limitedConn) count(requests int) {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	if c.place == nil {
		return
	}
	from := c.listener.origins[c.address]
	from.remove(c)
	c.requests += requests
	if c.requests > 0 {
		c.place = from.busy.PushBack(c)
	} else {
		c.place = from.idle.PushBack(c)
	}
}

type connKey struct{}

// withConn lets handlers find the connection of a request.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if limited, ok := conn.(*limitedConn); ok {
		return context.WithValue(ctx, connKey{}, limited)
	}
	return ctx
}

// counted notes the connections with a request in progress.
func counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, ok := r.Context().Value(connKey{}).(*limitedConn); ok {
			conn.count(1)
			defer conn.count(-1)
		}
		next.ServeHTTP(w, r)
	})
}

// evicted reports whether the connection of a request was closed for another one.
func evicted(r *http.Request) bool {
	conn, ok := r.Context().Value(connKey{}).(*limitedConn)
	if !ok {
		return false
	}
	conn.listener.mu.Lock()
	defer conn.listener.mu.Unlock()
	return conn.evicted
}
