package netns

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/testkit"
)

// reach connects to a port of a namespace on which nothing listens: where packets
// arrive in both directions, the connection is refused.
func reach(t *testing.T, n *Network, i int) error {
	t.Helper()
	dialer := net.Dialer{Timeout: 300 * time.Millisecond}
	conn, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort(n.Address(i), "1"))
	if err == nil {
		_ = conn.Close()
		t.Fatal("something listens in an empty namespace")
	}
	return err
}

// awaitReach waits until packets arrive: an interface needs a moment to come up.
func awaitReach(t *testing.T, n *Network, i int) {
	t.Helper()
	testkit.AwaitWithin(t, 10*time.Second, "packets arrive", func() bool { return errors.Is(reach(t, n, i), syscall.ECONNREFUSED) })
}

func TestPacketsAreLostInOneDirection(t *testing.T) {
	n := network(t, 2)
	defer func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}()
	awaitReach(t, n, 1)
	for name, loss := range map[string]struct{ begin, end func(context.Context) error }{
		"to this machine": {
			func(ctx context.Context) error { return n.Lose(ctx, 0, n.Host(0)) },
			func(ctx context.Context) error { return n.Find(ctx, 0, n.Host(0)) },
		},
		"from this machine": {
			func(ctx context.Context) error { return n.LoseFromHost(ctx, 0) },
			func(ctx context.Context) error { return n.FindFromHost(ctx, 0) },
		},
		"in both directions": {
			func(ctx context.Context) error { return n.Isolate(ctx, 0) },
			func(ctx context.Context) error { return n.Rejoin(ctx, 0) },
		},
	} {
		awaitReach(t, n, 0)
		if err := loss.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		var timeout net.Error
		if err := reach(t, n, 0); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("packets are lost %s: %v; want no answer", name, err)
		}
		if err := reach(t, n, 1); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("packets are lost %s, and the other namespace: %v", name, err)
		}
		if err := loss.end(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	awaitReach(t, n, 0)
}
