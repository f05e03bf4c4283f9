package sidecar

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/exactly-one/tenure"
)

// maxConnections bounds the open connections, so that no client can use up the
// descriptors with which the node reconnects to its database. It leaves room
// beside the event streams for everybody else.
const maxConnections = maxStreams + 256

// socketBuffer is the size of the kernel's buffers of each connection. The
// default would let a client that does not read keep megabytes.
const socketBuffer = 64 << 10

// Listen binds an address, as [ParseAddress] reads it. The error is one line that
// says what to do, and matches [tenure.ErrInvalidConfig]. The context bounds the
// resolution of a host name.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	bind, err := ParseAddress(address)
	if err != nil {
		return nil, err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", bind)
	if err == nil {
		return limit(listener, maxConnections), nil
	}
	reason := err.Error()
	var dns *net.DNSError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		reason = "the port is in use by another program"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		reason = "this machine does not have that address"
	case errors.Is(err, os.ErrPermission):
		reason = "this user may not use that port; choose one above 1023"
	case errors.As(err, &dns):
		reason = "the host name cannot be resolved"
	}
	return nil, fmt.Errorf("%w: cannot listen on %s: %s", tenure.ErrInvalidConfig, bind, reason)
}

// limitedListener accepts a connection only while fewer than a number are open.
// Others wait in the kernel's queue.
type limitedListener struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func limit(listener net.Listener, connections int) net.Listener {
	return &limitedListener{Listener: listener, slots: make(chan struct{}, connections), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok { // a buffer of another size serves too
		_ = tcp.SetReadBuffer(socketBuffer)
		_ = tcp.SetWriteBuffer(socketBuffer)
	}
	return &limitedConn{Conn: conn, release: sync.OnceFunc(func() { <-l.slots })}, nil
}

// Close implements net.Listener.
func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// limitedConn gives its slot back when it is closed.
type limitedConn struct {
	net.Conn
	release func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
