package pgtest

import (
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// SlowDSN returns a connection string of the superuser that leads to the server through relays,
// one for each host. A relay passes on what a connection sends only after a delay, like a
// server to which many nodes connect. delay is called for each connection, by several
// goroutines. The relays end with the test.
func (s *Server) SlowDSN(t testing.TB, hosts int, delay func() time.Duration) string {
	t.Helper()
	dsn, err := url.Parse(s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	relays := make([]string, hosts)
	for i := range relays {
		relays[i] = s.slowRelay(t, delay)
	}
	dsn.Host = strings.Join(relays, ",")
	return dsn.String()
}

// slowRelay starts a relay and returns its address.
func (s *Server) slowRelay(t testing.TB, delay func() time.Duration) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var group sync.WaitGroup
	t.Cleanup(func() {
		close(ended)
		_ = listener.Close()
		group.Wait()
	})
	group.Go(func() { // ends with the listener
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() { // ends with the connection or the test
				defer func() { _ = conn.Close() }()
				select {
				case <-time.After(delay()):
					s.forward(conn, ended)
				case <-ended:
				}
			})
		}
	})
	return listener.Addr().String()
}

// forward connects a client to the server until either ends the connection.
func (s *Server) forward(client net.Conn, ended <-chan struct{}) {
	server, err := net.Dial("tcp", net.JoinHostPort(s.Host, strconv.Itoa(s.Port)))
	if err != nil {
		return
	}
	closeBoth := func() {
		_ = client.Close()
		_ = server.Close()
	}
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() { // ends with this function
		select {
		case <-ended:
			closeBoth()
		case <-done:
		}
	})
	group.Go(func() { // ends with the connections
		_, _ = io.Copy(server, client)
		closeBoth()
	})
	_, _ = io.Copy(client, server)
	closeBoth()
	close(done)
	group.Wait()
}
