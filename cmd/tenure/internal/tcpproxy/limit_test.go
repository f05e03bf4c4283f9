package tcpproxy

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// accepted opens a connection for each client and returns the clients whose connection
// was accepted. The connections are this machine's; addresses says whose they would be.
func accepted(t *testing.T, most, perAddress int, closeFirst bool, clients ...string) (got []string, log string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addresses := map[string]net.Addr{}
	for i, client := range clients {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		addresses[conn.LocalAddr().String()] = &net.TCPAddr{IP: net.ParseIP(client), Port: i + 1}
	}
	var text strings.Builder
	seen := 0
	limited := limit(listener, most, perAddress, slog.New(slog.NewTextHandler(&text, nil)), func(conn net.Conn) net.Addr {
		if seen++; seen == len(clients) {
			listener.Close()
		}
		return addresses[conn.RemoteAddr().String()]
	})
	for {
		conn, err := limited.Accept()
		if errors.Is(err, net.ErrClosed) {
			return got, text.String()
		}
		t.Cleanup(func() { conn.Close() })
		got = append(got, addresses[conn.RemoteAddr().String()].(*net.TCPAddr).IP.String())
		if closeFirst && len(got) == 1 {
			conn.Close()
			conn.Close() // counts once
		}
	}
}

func TestOneAddressCannotTakeAllConnections(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name       string
		closeFirst bool
		clients    []string
		want       string // the clients that are accepted
		warning    string
	}{
		{"one address", false, []string{"10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.2"}, "10.0.0.1 10.0.0.1 10.0.0.2", "--max-per-address"},
		{"a place that is free again", true, []string{"10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.1"}, "10.0.0.1 10.0.0.1 10.0.0.1", "--max-per-address"},
		{"one network", false, []string{"2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::1"}, "2001:db8::1 2001:db8::2 2001:db8:0:1::1", "--max-per-address"},
		{"both forms of an address", false, []string{"10.0.0.1", "::ffff:10.0.0.1", "10.0.0.1"}, "10.0.0.1 10.0.0.1", "--max-per-address"},
		{"this machine", false, []string{"127.0.0.1", "127.0.0.1", "127.0.0.1", "::1", "::1", "10.0.0.1"}, "127.0.0.1 127.0.0.1 127.0.0.1 ::1", "--max-connections"},
	} {
		got, log := accepted(t, 4, 2, test.closeFirst, test.clients...)
		if strings.Join(got, " ") != test.want || !strings.Contains(log, test.warning) {
			t.Errorf("%s: accepted %q, want %q; log %q, want %s", test.name, got, test.want, log, test.warning)
		}
	}
}

// A connection that is one too many ends at its client.
func TestConnectionBeyondTheLimitIsReset(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	limited := limit(listener, 1, 0, slog.New(slog.DiscardHandler), func(net.Conn) net.Addr {
		listener.Close() // no other connection follows
		return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}
	})
	if conn, err := limited.Accept(); err == nil {
		t.Fatalf("%v was accepted, want none", conn.RemoteAddr())
	}
	_ = client.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := client.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading: %v, want that the connection was closed", err)
	}
}
