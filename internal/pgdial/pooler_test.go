package pgdial

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// relayed is a connection through something that may be a pooler: the server sees another
// socket. It counts the questions for Pgpool-II.
type relayed struct {
	net.Conn
	asked *atomic.Int32
}

func (r relayed) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }

func (r relayed) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("pool_version")) {
		r.asked.Add(1)
	}
	return r.Conn.Write(b)
}

// A Dialer asks an address for Pgpool-II once, again after the address refused a
// connection, and before each session: a pooler can take the place of a server.
func TestPgpoolIsAskedForAgain(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	var asked atomic.Int32
	broken := false
	config := several(t, []string{net.JoinHostPort(server.Host, strconv.Itoa(server.Port))}, "sslmode=disable")
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if broken {
			return nil, errors.New("refused by the test")
		}
		conn, err := dial(ctx, network, address)
		return relayed{conn, &asked}, err
	}
	d := New(clocks.System())
	pooled := config.Copy()
	prepare := d.PreparePool(pooled, Credentials{DSN: config.ConnString()}, Options{Use: Pool})
	connect := func(what string, use Use, want int32) {
		t.Helper()
		asked.Store(0)
		var conn *pgx.Conn
		var err error
		if use == Pool {
			one := pooled.Copy()
			if err = prepare(t.Context(), one); err == nil {
				conn, err = pgx.ConnectConfig(t.Context(), one)
			}
		} else {
			conn, err = d.Connect(t.Context(), config, Options{Use: use})
		}
		if (err != nil) != broken {
			t.Fatalf("%s: %v", what, err)
		}
		if err == nil {
			defer conn.Close(t.Context())
		}
		if got := asked.Load(); got != want {
			t.Errorf("%s: %d questions; want %d", what, got, want)
		}
	}
	connect("the first connection", Question, 1)
	connect("the second connection", Question, 0)
	connect("a connection of a pool", Pool, 0)
	connect("a session", Session, 1)
	connect("a watch", Watch, 1)
	for _, use := range []Use{Question, Pool} {
		broken = true
		connect("a failure", use, 0)
		broken = false
		connect("the connection after a failure", use, 1)
		connect("the next connection", use, 0)
	}
}
