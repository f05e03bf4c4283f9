package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// A node opens its session on a server that answers each connection after a delay, and
// then reads, both within three times as long as that takes with enough time. A session
// needs two connections, one after the other, and the reads another one.
func TestNodeIsOpenOnSlowServer(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Shared(t)
	for _, c := range []struct {
		hosts int
		delay time.Duration
	}{
		{1, 6 * time.Second},
		{1, 20 * time.Second},
		{1, 50 * time.Second},
		{2, 2500 * time.Millisecond},
		{2, 8 * time.Second},
	} {
		t.Run(fmt.Sprintf("%d after %v", c.hosts, c.delay), func(t *testing.T) {
			t.Parallel()
			config := Config{Schema: server.Schema(t)}
			open(t, backendOn(t, server.DSN(), config)).Abort() // creates the tables
			b := backendOn(t, server.SlowDSN(t, c.hosts, func() time.Duration { return c.delay }), config)

			most := 3 * 2 * c.delay
			ctx, cancel := context.WithTimeout(t.Context(), 2*most)
			defer cancel()
			began := time.Now()
			node, err := tenure.Open(ctx, b, tenure.Config{
				Name: "late", Lease: time.Minute, Logger: slog.New(slog.NewTextHandler(logWriter{t}, nil)),
			})
			if err != nil {
				t.Fatalf("no node is open after %v (want at most %v): %v", time.Since(began), most, err)
			}
			defer func() { _ = node.Close(context.Background()) }()
			if took := time.Since(began); took > most {
				t.Errorf("the node was open after %v, want at most %v", took, most)
			}

			most += 3 * c.delay
			for {
				_, err := b.Leaders(t.Context())
				took := time.Since(began)
				if err == nil && took <= most {
					break
				}
				if took > most {
					t.Fatalf("the node was open, but a read failed until %v (want at most %v): %v", took, most, err)
				}
			}
		})
	}
}

// Calls that may take a second each read on a server that answers each connection after
// three: the attempt to connect continues between them.
func TestShortCallsReadOnSlowServer(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Shared(t)
	config := Config{Schema: server.Schema(t)}
	open(t, backendOn(t, server.DSN(), config)).Abort() // creates the tables
	b := backendOn(t, server.SlowDSN(t, 1, func() time.Duration { return 3 * time.Second }), config)
	for began := time.Now(); ; {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := b.Leaders(ctx)
		cancel()
		if err == nil {
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("no call of %v has read: %v", time.Since(began), err)
		}
	}
}

// On a server that answers only the second connection of a session late, a session is
// opened: the first connection does not make the limit of the second one the least again.
// The session does, so that a server that hangs later is given up after 5 s.
func TestSessionAndNotConnectionEndsSeries(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Shared(t)
	config := Config{Schema: server.Schema(t)}
	open(t, backendOn(t, server.DSN(), config)).Abort() // creates the tables
	var connections, hangs atomic.Int64
	b := backendOn(t, server.SlowDSN(t, 1, func() time.Duration {
		if hangs.Load() > 0 {
			return time.Hour
		}
		return time.Duration(1-connections.Add(1)%2) * 7 * time.Second
	}), config)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	node, err := tenure.Open(ctx, b, tenure.Config{
		Name: "late", Lease: time.Minute, Logger: slog.New(slog.NewTextHandler(logWriter{t}, nil)),
	})
	if err != nil {
		t.Fatalf("no session is open after %v: %v", time.Since(began), err)
	}
	defer func() { _ = node.Close(context.Background()) }()

	hangs.Store(1)
	began = time.Now()
	_, err = b.Leaders(t.Context())
	if took := time.Since(began); err == nil || took < 5*time.Second || took > 8*time.Second {
		t.Errorf("after a session was opened, a server that hangs was given up after %v (error %v), want 5s", took, err)
	}
}

// A watch connection that is lost is opened again on a server that answers each connection
// after 7 s.
func TestWatchReconnectsToSlowServer(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Shared(t)
	var slow atomic.Bool
	b := backendOn(t, server.SlowDSN(t, 1, func() time.Duration {
		if slow.Load() {
			return 7 * time.Second
		}
		return 0
	}), Config{Schema: server.Schema(t)})
	open(t, b, lasting) // the watch connection of a node without others is idle
	p := open(t, b, lasting)
	slow.Store(true)
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	await := func(what string, down bool, most time.Duration) {
		t.Helper()
		for began := time.Now(); p.watch.down.Load() != down; <-poll.C {
			if took := time.Since(began); took > most {
				t.Fatalf("the watch connection %s in %v", what, took)
			}
		}
	}
	terminate := "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1"
	if _, err := server.Conn(t).Exec(t.Context(), terminate, watchOf(p)); err != nil {
		t.Fatal(err)
	}
	await("was not lost", true, patience)
	await("has not come back", false, time.Minute)
}
