package faultwire_test

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// wire is a connection through a proxy, seen from both ends, with bytes that
// belong to no protocol.
type wire struct {
	client, server *net.TCPConn
	conn           *faultwire.Conn
}

func newWire(t *testing.T) wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	proxy := startProxy(t, listener.Addr().String())

	client, err := net.Dial("tcp", proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	conn, err := proxy.Await(t.Context(), func(*faultwire.Conn) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	return wire{client.(*net.TCPConn), server.(*net.TCPConn), conn}
}

func startProxy(t *testing.T, target string) *faultwire.Proxy {
	t.Helper()
	proxy, err := faultwire.Start(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	return proxy
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

// expect reads exactly this text.
func expect(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	got := make([]byte, len(text))
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		t.Fatalf("got %q (%v), want %q", got[:n], err, text)
	}
}

// expectEnd reads the end of the stream: io.EOF or an errno.
func expectEnd(t *testing.T, conn net.Conn, want error) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, want) {
		t.Fatalf("got %d bytes, %v; want %v", n, err, want)
	}
}

// expectSilence sees nothing arrive for a while, not even the end.
func expectSilence(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %d bytes, %v; want silence", n, err)
	}
}

func TestWireForwardsBothWays(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	send(t, w.client, "question")
	expect(t, w.server, "question")
	send(t, w.server, "answer")
	expect(t, w.client, "answer")

	_ = w.client.CloseWrite()
	expectEnd(t, w.server, io.EOF)
	send(t, w.server, "last words")
	expect(t, w.client, "last words")
	_ = w.server.Close()
	expectEnd(t, w.client, io.EOF)
	<-w.conn.Done()
}

func TestResetIsForwarded(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	_ = w.client.SetLinger(0)
	_ = w.client.Close()
	expectEnd(t, w.server, syscall.ECONNRESET)
}

func TestStallHoldsData(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	w.conn.Stall(faultwire.ToServer)
	send(t, w.client, "late")
	expectSilence(t, w.server)
	send(t, w.server, "other direction")
	expect(t, w.client, "other direction")

	w.conn.Resume()
	expect(t, w.server, "late")
}

func TestStallHoldsTheEndBack(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	w.conn.Stall()
	send(t, w.client, "before the end")
	_ = w.client.Close()
	expectSilence(t, w.server)

	w.conn.Resume()
	expect(t, w.server, "before the end")
	expectEnd(t, w.server, io.EOF)
}

func TestDelayHoldsDataForItsTime(t *testing.T) {
	t.Parallel()
	const delay = 100 * time.Millisecond
	w := newWire(t)
	w.conn.Delay(delay, faultwire.ToServer)
	began := time.Now()
	send(t, w.client, "one")
	send(t, w.client, "two")
	expect(t, w.server, "onetwo")
	if took := time.Since(began); took < delay {
		t.Errorf("it took %v", took)
	}
	w.conn.Delay(0)
	send(t, w.client, "three")
	expect(t, w.server, "three")
}

func TestDropAfterLosesLaterBytes(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	w.conn.DropAfter(6, faultwire.ToServer)
	send(t, w.client, "four")
	expect(t, w.server, "four")
	send(t, w.client, "five")
	expect(t, w.server, "fi")
	_ = w.client.CloseWrite()
	expectSilence(t, w.server)
}

func TestEndsReachBothSides(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end  func(*faultwire.Conn, ...faultwire.Direction)
		want error
	}{
		"RST": {(*faultwire.Conn).Cut, syscall.ECONNRESET},
		"FIN": {(*faultwire.Conn).CloseGracefully, io.EOF},
	} {
		t.Run(name+" to both", func(t *testing.T) {
			t.Parallel()
			w := newWire(t)
			test.end(w.conn)
			expectEnd(t, w.client, test.want)
			expectEnd(t, w.server, test.want)
			<-w.conn.Done()
		})
		t.Run(name+" to the client", func(t *testing.T) {
			t.Parallel()
			w := newWire(t)
			test.end(w.conn, faultwire.ToClient)
			expectEnd(t, w.client, test.want)
			expectSilence(t, w.server)
		})
		t.Run(name+" to the server", func(t *testing.T) {
			t.Parallel()
			w := newWire(t)
			test.end(w.conn, faultwire.ToServer)
			expectEnd(t, w.server, test.want)
			expectSilence(t, w.client)
		})
	}
}

func TestFaultsOfTheProxyAreForAll(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	proxy := startProxy(t, listener.Addr().String())
	connect := func() (client, server net.Conn) {
		t.Helper()
		client, err := net.Dial("tcp", proxy.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		server, err = listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { server.Close() })
		return client, server
	}

	oldClient, oldServer := connect()
	proxy.Stall()
	newClient, newServer := connect()
	send(t, oldClient, "old")
	send(t, newClient, "new")
	expectSilence(t, oldServer)
	expectSilence(t, newServer)
	proxy.Resume()
	expect(t, oldServer, "old")
	expect(t, newServer, "new")
	if n := len(proxy.Connections()); n != 2 {
		t.Errorf("%d connections", n)
	}

	if err := proxy.Close(); err != nil {
		t.Fatal(err)
	}
	expectEnd(t, oldClient, syscall.ECONNRESET)
	expectEnd(t, newServer, syscall.ECONNRESET)
}

func TestUnreachableServerResetsTheClient(t *testing.T) {
	t.Parallel()
	const nobody = "127.0.0.1:1"
	client, err := net.Dial("tcp", startProxy(t, nobody).Addr())
	if err != nil {
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Fatal(err)
		}
		return // the RST was faster than Dial
	}
	defer client.Close()
	expectEnd(t, client, syscall.ECONNRESET)
}
