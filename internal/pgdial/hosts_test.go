package pgdial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// patience bounds a hang of a test, never the protocol.
const patience = 30 * time.Second

// A host that hangs, wherever it does, does not delay a connection to the primary
// behind it. With connect_timeout=60 no bound of the attempt can be the reason.
func TestHungHostIsPassed(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	for name, hung := range hungHosts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, place := range []int{0, 1, 2} { // of the primary
				addresses := []string{hung(t), hung(t)}
				addresses = slices.Insert(addresses, place, net.JoinHostPort(server.Host, strconv.Itoa(server.Port)))
				config := several(t, addresses, "sslmode=prefer connect_timeout=60")
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				conn, err := New(clocks.System()).Connect(ctx, config, Options{Use: Question})
				cancel()
				if err != nil {
					t.Fatalf("the primary at place %d: %v", place, err)
				}
				conn.Close(t.Context())
			}
		})
	}
}

// One that hangs and has no other beside it is given up at the bound.
func TestHungHostAloneIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, hung := range hungHosts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err := New(clocks.System()).Connect(ctx, several(t, []string{hung(t)}, "sslmode=prefer connect_timeout=1"), Options{Use: Question})
			if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "connect_timeout") {
				t.Errorf("%v; want an error about connect_timeout before the context ends", err)
			}
		})
	}
}

// hungHosts are hosts that hang, each in another phase of connecting.
func hungHosts() map[string]func(*testing.T) string {
	return map[string]func(*testing.T) string{
		"SYN is dropped": fullBacklog,
		"no answer":      func(t *testing.T) string { return listener(t, func(net.Conn) {}) },
		"in the name's resolution": func(*testing.T) string {
			return net.JoinHostPort(hungName, "5432")
		},
		"in TLS": func(t *testing.T) string {
			return listener(t, func(conn net.Conn) {
				if _, err := io.ReadFull(conn, make([]byte, 8)); err == nil {
					_, _ = conn.Write([]byte("S"))
				}
			})
		},
		"in authentication": func(t *testing.T) string {
			return listener(t, func(conn net.Conn) {
				backend := pgproto3.NewBackend(conn, conn)
				message, err := backend.ReceiveStartupMessage()
				if _, encrypted := message.(*pgproto3.SSLRequest); encrypted && err == nil {
					_, _ = conn.Write([]byte("N"))
					_, err = backend.ReceiveStartupMessage()
				}
				if err == nil {
					backend.Send(&pgproto3.AuthenticationMD5Password{})
					_ = backend.Flush()
				}
			})
		},
		"in the first statement": func(t *testing.T) string {
			return listener(t, func(conn net.Conn) { welcome(conn) })
		},
	}
}

// hungName is a host name whose resolution does not end on its own.
const hungName = "hung.invalid"

// welcome lets a client in.
func welcome(conn net.Conn) {
	backend := pgproto3.NewBackend(conn, conn)
	message, err := backend.ReceiveStartupMessage()
	if _, encrypted := message.(*pgproto3.SSLRequest); encrypted && err == nil {
		_, _ = conn.Write([]byte("N"))
		_, err = backend.ReceiveStartupMessage()
	}
	if err != nil {
		return
	}
	backend.Send(&pgproto3.AuthenticationOk{})
	backend.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 1}})
	backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	_ = backend.Flush()
}

// listener accepts connections, does something with each, and keeps them open
// until the end of the test.
func listener(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		conns []net.Conn
		ended bool
	)
	group.Go(func() { // ends with the listener
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			if conns = append(conns, conn); ended {
				_ = conn.Close()
			}
			mu.Unlock()
			group.Go(func() { serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		ended = true
		for _, conn := range conns {
			_ = conn.Close()
		}
		mu.Unlock()
		group.Wait()
	})
	return l.Addr().String()
}

// several returns the configuration for several addresses.
func several(t *testing.T, addresses []string, parameters string) *pgx.ConnConfig {
	t.Helper()
	var hosts, ports []string
	for _, address := range addresses {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		hosts, ports = append(hosts, host), append(ports, port)
	}
	config, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=%s user=postgres dbname=postgres %s",
		strings.Join(hosts, ","), strings.Join(ports, ","), parameters))
	if err != nil {
		t.Fatal(err)
	}
	lookup := config.LookupFunc
	config.LookupFunc = func(ctx context.Context, host string) ([]string, error) {
		if host == hungName {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return lookup(ctx, host)
	}
	return config
}

// recorded notes the addresses that are dialed.
func recorded(config *pgx.ConnConfig) func() []string {
	var (
		mu     sync.Mutex
		dialed []string
	)
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		mu.Lock()
		dialed = append(dialed, address)
		mu.Unlock()
		return dial(ctx, network, address)
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		all := dialed
		dialed = nil
		return all
	}
}

// The host that was the primary is tried first, until it is no longer the
// primary.
func TestPrimaryIsRemembered(t *testing.T) {
	t.Parallel()
	old := pgtest.Start(t, pgtest.Options{})
	replica := old.Replica(t, pgtest.ReplicaOptions{})
	address := func(s *pgtest.Server) string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }
	config := several(t, []string{address(replica), address(old)}, "sslmode=disable")
	dialed := recorded(config)
	d := New(clocks.System())
	connect := func(want *pgtest.Server) {
		t.Helper()
		conn, err := d.Connect(t.Context(), config, Options{Use: Question})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		if got := conn.PgConn().Conn().RemoteAddr().String(); got != address(want) {
			t.Errorf("connected to %s, want %s", got, address(want))
		}
	}
	connect(old)
	dialed()
	connect(old)
	if got := dialed(); len(got) == 0 || got[0] != address(old) {
		t.Errorf("the second connection dialed %v; want %s first", got, address(old))
	}
	old.Stop(t, "immediate")
	replica.Promote(t)
	connect(replica)
	dialed()
	connect(replica)
	if got := dialed(); len(got) == 0 || got[0] != address(replica) {
		t.Errorf("after a promotion it dialed %v; want %s first", got, address(replica))
	}
}

// A host that is to be avoided is tried last, until a connection to it succeeds
// because there is no other.
func TestAvoidedHostIsTriedLast(t *testing.T) {
	t.Parallel()
	avoided, other := pgtest.Start(t, pgtest.Options{}), pgtest.Start(t, pgtest.Options{})
	address := func(s *pgtest.Server) string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }
	config := several(t, []string{address(avoided), address(other)}, "sslmode=disable")
	d := New(clocks.System())
	connect := func(want *pgtest.Server) *pgx.Conn {
		t.Helper()
		conn, err := d.Connect(t.Context(), config, Options{Use: Question})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		if got := conn.PgConn().Conn().RemoteAddr().String(); got != address(want) {
			t.Errorf("connected to %s, want %s", got, address(want))
		}
		return conn
	}
	d.Avoid(connect(avoided))
	connect(other)
	other.Stop(t, "immediate")
	connect(avoided)
	other.Start(t)
	connect(avoided) // it is the primary that the dialer knows
}

// All addresses of one name are tried, the next one beside one that hangs.
func TestAllAddressesOfANameAreTried(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	const name = "database.invalid"
	config := several(t, []string{name + ":1"}, "sslmode=disable connect_timeout=60")
	hung := listener(t, func(net.Conn) {})
	primary := net.JoinHostPort(server.Host, strconv.Itoa(server.Port))
	config.LookupFunc = func(context.Context, string) ([]string, error) { return []string{hung, primary}, nil }
	dialed := recorded(config)
	d := New(clocks.System())
	for _, wantFirst := range []string{hung, primary} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		conn, err := d.Connect(ctx, config, Options{Use: Question})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		conn.Close(t.Context())
		if got := dialed(); got[0] != wantFirst {
			t.Errorf("dialed %v; want %s first", got, wantFirst)
		}
	}
}

// Without connect_timeout an attempt has the bound of its kind, and none has more
// than the connection string allows.
func TestAttemptIsBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hosts      int
		parameters string
		want       time.Duration
	}{
		{1, "", 5 * time.Second}, {2, "", 3 * time.Second}, {3, "connect_timeout=7", 7 * time.Second}, {1, "connect_timeout=1", time.Second},
	} {
		config := several(t, slices.Repeat([]string{"127.0.0.1:1"}, 1), c.parameters)
		for i := range c.hosts - 1 {
			more := several(t, []string{fmt.Sprintf("127.0.0.1:%d", i+2)}, "sslmode=disable")
			config.Fallbacks = append(config.Fallbacks, targetFallback(more))
		}
		refused := errors.New("refused")
		var (
			mu     sync.Mutex
			bounds []time.Duration
		)
		config.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
			deadline, _ := ctx.Deadline()
			mu.Lock()
			defer mu.Unlock()
			bounds = append(bounds, time.Until(deadline))
			return nil, refused
		}
		if _, err := New(clocks.System()).Connect(t.Context(), config, Options{}); !errors.Is(err, refused) {
			t.Errorf("%+v: %v", c, err)
		}
		for _, bound := range bounds {
			if bound > c.want || bound < c.want-patience {
				t.Errorf("%+v: an attempt is bounded by %v", c, bound)
			}
		}
		if len(bounds) < c.hosts {
			t.Errorf("%+v: %d attempts", c, len(bounds))
		}
	}
}

// An error is a decision only if every host has been reached and refused.
func TestDecidedNeedsRefusalsOfAllHosts(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	replica := primary.Replica(t, pgtest.ReplicaOptions{})
	address := net.JoinHostPort(replica.Host, strconv.Itoa(replica.Port))
	for name, c := range map[string]struct {
		addresses []string
		decided   bool
	}{
		"a replica":                      {[]string{address}, true},
		"a replica, by two names":        {[]string{address, strings.Replace(address, "127.0.0.1", "localhost", 1)}, true},
		"a replica and one that is down": {[]string{address, "127.0.0.1:1"}, false},
		"one that is down":               {[]string{"127.0.0.1:1"}, false},
	} {
		_, err := New(clocks.System()).Connect(t.Context(), several(t, c.addresses, "sslmode=prefer"), Options{Use: Question})
		if err == nil || decided(err) != c.decided || c.decided && !errors.Is(err, dberr.ErrInRecovery) {
			t.Errorf("%s: decided %t, want %t: %v", name, decided(err), c.decided, err)
		}
		if refused := errors.Is(Explain(err), tenure.ErrRefused); refused != c.decided {
			t.Errorf("%s: refused for good: %t, want %t", name, refused, c.decided)
		}
	}
}

// What a pool is led to is the primary, and not the host that hangs before it.
func TestPoolIsLedToThePrimary(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	primary := net.JoinHostPort(server.Host, strconv.Itoa(server.Port))
	config := several(t, []string{listener(t, func(net.Conn) {}), primary}, "sslmode=disable connect_timeout=60")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	prepare := New(clocks.System()).PreparePool(config, Credentials{DSN: config.ConnString()}, Options{Use: Pool})
	if err := prepare(ctx, config); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if got := conn.PgConn().Conn().RemoteAddr().String(); got != primary {
		t.Errorf("it connects to %s, want %s", got, primary)
	}
}

func targetFallback(config *pgx.ConnConfig) *pgconn.FallbackConfig {
	return &pgconn.FallbackConfig{Host: config.Host, Port: config.Port}
}
