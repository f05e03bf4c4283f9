package pgdial

import (
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure/clocks"
)

// unanswered is a network in which no address answers. It notes when each is dialed.
type unanswered struct {
	hangs bool // the connection is not even accepted
	begun time.Time

	mu     sync.Mutex
	dialed []time.Duration
	conns  []net.Conn
}

func (u *unanswered) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.dialed = append(u.dialed, time.Since(u.begun))
	if u.hangs {
		u.mu.Unlock()
		<-ctx.Done()
		u.mu.Lock()
		return nil, ctx.Err()
	}
	near, far := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, far) }() // ends when far is closed
	u.conns = append(u.conns, near, far)
	return near, nil
}

func (u *unanswered) close() {
	for _, conn := range u.conns {
		_ = conn.Close()
	}
}

// The document states how long an attempt lasts and when the next address is tried.
func TestUnansweredAttemptsEndAtTheDocumentedTimes(t *testing.T) {
	const ms = time.Millisecond
	hosts := []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}
	for name, c := range map[string]struct {
		hosts      int
		addresses  []string // of the only host
		parameters string
		dialed     []time.Duration
		ended      time.Duration
	}{
		"one host":                 {1, nil, "", []time.Duration{0}, 5 * time.Second},
		"two hosts":                {2, nil, "", []time.Duration{0, 200 * ms}, 3200 * ms},
		"three hosts":              {3, nil, "", []time.Duration{0, 200 * ms, 400 * ms}, 3400 * ms},
		"two addresses of a host":  {1, []string{"127.0.0.1:4", "127.0.0.1:5"}, "", []time.Duration{0, 200 * ms}, 3200 * ms},
		"one, connect_timeout=7":   {1, nil, "connect_timeout=7", []time.Duration{0}, 7 * time.Second},
		"two, connect_timeout=7":   {2, nil, "connect_timeout=7", []time.Duration{0, 200 * ms}, 7200 * ms},
		"three, connect_timeout=1": {3, nil, "connect_timeout=1", []time.Duration{0, 200 * ms, 400 * ms}, 1400 * ms},
	} {
		for _, hangs := range []bool{false, true} {
			if hangs {
				name += ", not accepted"
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					config := several(t, hosts[:c.hosts], "sslmode=disable "+c.parameters)
					config.LookupFunc = func(_ context.Context, host string) ([]string, error) {
						if c.addresses != nil {
							return c.addresses, nil
						}
						return []string{host}, nil
					}
					network := &unanswered{hangs: hangs, begun: time.Now()}
					defer network.close()
					config.DialFunc = network.dial
					if _, err := New(clocks.System()).Connect(t.Context(), config, Options{Use: Question}); err == nil {
						t.Fatal("connected; want an error")
					}
					if took := time.Since(network.begun); took != c.ended {
						t.Errorf("the attempt ended after %v; want %v", took, c.ended)
					}
					if !slices.Equal(network.dialed, c.dialed) {
						t.Errorf("addresses were dialed after %v; want %v", network.dialed, c.dialed)
					}
				})
			})
		}
	}
}
