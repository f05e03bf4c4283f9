package tcpproxy

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Limit returns a listener that keeps at most a number of connections open. It
// closes others, and logs that at most once a minute.
func Limit(listener net.Listener, connections int, log *slog.Logger) net.Listener {
	return &limited{Listener: listener, most: int64(connections), log: log}
}

type limited struct {
	net.Listener
	most   int64
	log    *slog.Logger
	open   atomic.Int64
	logged time.Time // only Accept uses it
}

// acceptPause is the time after an error of Accept that may pass, such as too many
// open files.
const acceptPause = 50 * time.Millisecond

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil, err
		case err != nil:
			l.warn("accepting a connection failed", "error", err)
			time.Sleep(acceptPause)
		case l.open.Add(1) > l.most:
			l.open.Add(-1)
			l.warn("a connection was closed: too many are open", "client", conn.RemoteAddr().String(), "max_connections", l.most)
			reset(conn)
		default:
			return &counted{TCPConn: conn.(*net.TCPConn), closed: sync.OnceFunc(func() { l.open.Add(-1) })}, nil
		}
	}
}

func (l *limited) warn(message string, args ...any) {
	if now := time.Now(); now.Sub(l.logged) > time.Minute {
		l.logged = now
		l.log.Warn(message, args...)
	}
}

// counted is a connection that the limit counts until it is closed.
type counted struct {
	*net.TCPConn
	closed func()
}

func (c *counted) Close() error {
	c.closed()
	return c.TCPConn.Close()
}
