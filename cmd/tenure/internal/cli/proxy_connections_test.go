package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/program/console"
)

// openConn is a connection of a client that is open.
type openConn struct {
	name  string
	works func() error // exchanges a line with the leader
	reset bool         // at its end the client must see an error, not the end of an answer
}

// openStream opens a stream of an HTTP answer.
func openStream(c proxyClient) (openConn, error) {
	answer, err := c.ask(http.MethodGet, "/stream", nil)
	if err != nil {
		return openConn{}, err
	}
	lines := bufio.NewReader(answer.body)
	works := func() error { _, err := lines.ReadString('\n'); return err }
	return openConn{works: works, reset: true}, works()
}

// openUpgraded opens a connection that changes its protocol.
func openUpgraded(c proxyClient) (openConn, error) {
	answer, err := c.ask(http.MethodGet, "/", []string{"Connection", "Upgrade", "Upgrade", "echo"})
	if err == nil && answer.status != http.StatusSwitchingProtocols {
		err = fmt.Errorf("status %d", answer.status)
	}
	if err != nil {
		return openConn{}, err
	}
	return openConn{works: c.echoes}, c.echoes()
}

// openTCP opens a connection that is forwarded unchanged.
func openTCP(c proxyClient) (openConn, error) {
	return openConn{works: c.echoes, reset: true}, c.echoes()
}

// echoes sends a line, which must come back.
func (c proxyClient) echoes() error {
	if _, err := io.WriteString(c.Conn, "line\n"); err != nil {
		return err
	}
	line, err := c.ReadString('\n')
	if err == nil && line != "line\n" {
		err = fmt.Errorf("got %q", line)
	}
	return err
}

// Each connection of each client is served or reset as its row says. Those that are open
// last until the term ends, or the proxy.
func TestEveryConnectionThroughProxyAsEverybody(t *testing.T) {
	t.Parallel()
	t.Run("TCP", func(t *testing.T) { t.Parallel(); testConnections(t, false, openTCP) })
	t.Run("HTTP stream", func(t *testing.T) { t.Parallel(); testConnections(t, true, openStream) })
	t.Run("HTTP upgrade", func(t *testing.T) { t.Parallel(); testConnections(t, true, openUpgraded) })
}

func testConnections(t *testing.T, overHTTP bool, open func(proxyClient) (openConn, error)) {
	other, place := otherMachine(t), newPlace(t)
	program := echoServer(t)
	args := []string{"--max-connections", "5", "--max-per-address", "2", "--grace", "0s", "--wait", "1m"}
	if overHTTP {
		server := httptest.NewServer(http.HandlerFunc(serveAsLeader))
		t.Cleanup(server.Close)
		program = server.Listener.Addr().String()
		args = append(args, "--http")
	}
	_, leaderPort, _ := net.SplitHostPort(program)
	if !overHTTP {
		args = append(args, "--to-port", leaderPort)
	}
	lead := func(name string) *process {
		leader := place.run(t, "--role", "billing", "--name", name, "--address", thisMachine, "--http-port", leaderPort)
		leader.await("acquired")
		return leader
	}
	leader := lead("one")
	proxy, port := place.openProxy(t, args...)
	connect := func(from string) (openConn, error) {
		conn, err := connectFrom(from, port)
		if err != nil {
			return openConn{}, err
		}
		t.Cleanup(func() { conn.Close() })
		return open(conn)
	}
	var opened []openConn
	for _, row := range []struct {
		name   string
		from   string
		served bool
	}{
		{"this machine", thisMachine, true},
		{"another machine", other, true},
		{"another machine, with one connection", other, true},
		{"another machine, with as many as one address may have", other, false},
		{"this machine, when another one has as many as it may have", thisMachine, true},
		{"this machine, with as many as one address may have", thisMachine, true},
		{"this machine, when all connections are taken", thisMachine, false},
		{"another machine, when all connections are taken", other, false},
	} {
		o, err := connect(row.from)
		if row.served != (err == nil) || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("%s: got error %v; served: want %t", row.name, err, row.served)
		}
		if row.served {
			o.name = row.name
			opened = append(opened, o)
		}
	}
	for _, o := range opened {
		if err := o.works(); err != nil {
			t.Errorf("the open connection of %s: %v", o.name, err)
		}
	}
	leader.signal(syscall.SIGTERM)
	for _, o := range opened {
		o.awaitEnd(t, "the term")
	}
	lead("two")
	var last openConn
	eventually(t, "a place is free again", func() (served bool) {
		var err error
		last, err = connect(other)
		return err == nil
	})
	last.name = "another machine, at the next leader"
	proxy.signal(syscall.SIGTERM)
	last.awaitEnd(t, "the proxy")
	if code := proxy.exit(); code != console.ExitDone {
		t.Errorf("exit code %d, want %d", code, console.ExitDone)
	}
	if _, err := connect(thisMachine); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("when the proxy has ended: got error %v, want a refused connection", err)
	}
}

// awaitEnd waits until a connection has ended, for at most a minute.
func (o openConn) awaitEnd(t *testing.T, of string) {
	t.Helper()
	limit := time.Now().Add(time.Minute)
	err := o.works()
	for ; err == nil && time.Now().Before(limit); err = o.works() {
	}
	switch {
	case err == nil || errors.Is(err, os.ErrDeadlineExceeded):
		t.Errorf("a minute after the end of %s, the connection of %s is open", of, o.name)
	case o.reset && errors.Is(err, io.EOF):
		t.Errorf("at the end of %s, the connection of %s ended like an answer, want an error", of, o.name)
	}
}

// echoServer returns the address of a server that sends back the lines of its clients.
func echoServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() { // exits when the listener is closed
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { // exits when the client has gone
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return listener.Addr().String()
}
