package pgdial

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/openlimit"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// slowServer is an address of a server that passes on what it receives only after a time,
// like a server to which many nodes connect.
func slowServer(t *testing.T, server *pgtest.Server, delay time.Duration) string {
	t.Helper()
	address := net.JoinHostPort(server.Host, strconv.Itoa(server.Port))
	return listener(t, func(conn net.Conn) {
		defer func() { _ = conn.Close() }()
		select {
		case <-time.After(delay):
		case <-t.Context().Done():
			return
		}
		behind, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		defer func() { _ = behind.Close() }()
		go func() { // ends with the connections
			_, _ = io.Copy(behind, conn)
			_ = behind.Close()
		}()
		_, _ = io.Copy(conn, behind)
	})
}

// A server that is reached and answers too late gets more time the longer that lasts.
// Otherwise no attempt would succeed while many nodes connect.
func TestSlowServerGetsMoreTime(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(context.Context, *pgx.ConnConfig) (*pgx.Conn, error){
		"usual": nil, "with a function of the caller": pgx.ConnectConfig,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testSlowServer(t, Options{Use: Question, Connect: connect})
		})
	}
}

func testSlowServer(t *testing.T, options Options) {
	t.Helper()
	slow := slowServer(t, pgtest.Shared(t), timeoutOfSeveral+500*time.Millisecond)
	config := several(t, []string{slow, "127.0.0.1:1"}, "sslmode=disable")
	d := new(Dialer)
	if conn, err := d.Connect(t.Context(), config, options); err == nil {
		_ = conn.Close(t.Context())
		t.Fatal("the first attempt waited for the slow server")
	}
	if d.late == (openlimit.Series{}) {
		t.Fatal("the attempt that took too long was not noted")
	}
	d.late = openlimit.Series{}
	d.late.Note(clocks.System().Now().Mono-time.Minute, context.DeadlineExceeded)
	conn, err := d.Connect(t.Context(), config, options)
	if err != nil {
		t.Fatalf("an attempt a minute after the first: %v", err)
	}
	_ = conn.Close(t.Context())
	if d.late != (openlimit.Series{}) {
		t.Error("a success did not end the series")
	}
}

// A server that is not reached gets no more time: after a change of its address, the
// next attempt must not wait for the earlier one. Nor does one whose time
// connect_timeout sets.
func TestUnreachedServerGetsNoMoreTime(t *testing.T) {
	t.Parallel()
	d := new(Dialer)
	config := several(t, []string{"127.0.0.1:1", "127.0.0.1:2"}, "sslmode=disable")
	config.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if _, err := d.Connect(t.Context(), config, Options{Use: Question}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got error %v, want one about the time", err)
	}
	if d.late != (openlimit.Series{}) {
		t.Error("a server that was not reached was noted")
	}
	d.late.Note(clocks.System().Now().Mono-time.Hour, context.DeadlineExceeded)
	for _, c := range []struct {
		hosts      []string
		parameters string
		want       time.Duration
	}{
		{[]string{"h:1"}, "", time.Minute},
		{[]string{"h:1", "i:1"}, "", 15 * time.Second},
		{[]string{"h:1"}, "connect_timeout=3", 3 * time.Second},
	} {
		config := several(t, c.hosts, c.parameters)
		if got := d.limit(config, bound(config)); got != c.want {
			t.Errorf("%v %s: got %v, want %v", c.hosts, c.parameters, got, c.want)
		}
	}
}
