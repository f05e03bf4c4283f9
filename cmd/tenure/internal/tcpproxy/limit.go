package tcpproxy

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Limit returns a listener for at most a number of open connections, and at most
// perAddress of one client. It closes others, and logs them at most once a minute. The
// addresses of this machine are not limited: its programs share them.
func Limit(listener net.Listener, connections, perAddress int, log *slog.Logger) net.Listener {
	return limit(listener, connections, perAddress, log, net.Conn.RemoteAddr)
}

// limit is Limit with a function for the addresses of clients.
func limit(listener net.Listener, connections, perAddress int, log *slog.Logger, address func(net.Conn) net.Addr) net.Listener {
	return &limited{Listener: listener, most: connections, perAddress: perAddress, log: log, address: address, clients: map[netip.Prefix]int{}}
}

type limited struct {
	net.Listener
	most, perAddress int
	log              *slog.Logger
	address          func(net.Conn) net.Addr
	logged           time.Time // only Accept uses it

	mu      sync.Mutex
	open    int                  // guarded by mu
	clients map[netip.Prefix]int // open connections; guarded by mu
}

// acceptPause is the time after a temporary error of Accept, such as too many open files.
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
		default:
			address := l.address(conn)
			client := clientOf(address)
			if reason, limit := l.add(client); reason != "" {
				l.warn("a connection was closed: "+reason, "client", address.String(), "limit", limit)
				reset(conn)
				continue
			}
			return &counted{TCPConn: conn.(*net.TCPConn), closed: sync.OnceFunc(func() { l.remove(client) })}, nil
		}
	}
}

// add counts a connection of a client, or returns why it is one too many.
func (l *limited) add(client netip.Prefix) (reason string, limit int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.open >= l.most:
		return "too many are open (--max-connections)", l.most
	case !client.Addr().IsLoopback() && l.clients[client] >= l.perAddress:
		return "this address has too many (--max-per-address)", l.perAddress
	}
	l.open++
	l.clients[client]++
	return "", 0
}

func (l *limited) remove(client netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.clients[client]--; l.clients[client] == 0 {
		delete(l.clients, client)
	}
}

// clientOf returns the address of a client. Of IPv6 it is the network, in which one
// machine can have any address.
func clientOf(address net.Addr) netip.Prefix {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() && !ip.IsLoopback() {
		bits = 64
	}
	prefix, _ := ip.Prefix(bits) // the bits are those of the address
	return prefix
}

func (l *limited) warn(message string, args ...any) {
	if now := time.Now(); now.Sub(l.logged) > time.Minute {
		l.logged = now
		l.log.Warn(message, args...)
	}
}

// counted is a connection in the count of the limit until it is closed.
type counted struct {
	*net.TCPConn
	closed func()
}

func (c *counted) Close() error {
	c.closed()
	return c.TCPConn.Close()
}
