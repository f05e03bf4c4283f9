package acceptance_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	membership "github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// arrivals is the number of members that open their sessions at the same time.
const arrivals = 200

// All members of a large cluster come back after a restart of the server, although each
// opening then takes longer than the first limits of an attempt, and each leads the role
// again that no other is a candidate for.
func TestManyMembersComeBackAfterRestart(t *testing.T) {
	pgtest.Long(t)
	for _, mode := range []string{"fast", "immediate"} {
		t.Run(mode, func(t *testing.T) {
			server, c := newServer(t, pgtest.Options{Settings: map[string]string{"max_connections": "1000"}})
			c.config = tenure.Config{}
			c.migrate()
			members := &comeback{joins: make(chan struct{}, 4), changed: make(chan struct{}), terms: map[string]int64{}}
			ctx, stop := context.WithCancel(context.Background())
			var group sync.WaitGroup
			defer group.Wait()
			defer stop()
			begun := time.Now()
			for i := range arrivals {
				name := fmt.Sprintf("m%03d", i)
				backend, err := postgres.New(c.dsn, c.db)
				if err != nil {
					t.Fatal(err)
				}
				group.Go(func() { members.run(ctx, t, backend, name) })
			}
			members.await(t, arrivals, 0)
			t.Logf("%d members joined and lead within %v", arrivals, time.Since(begun).Round(100*time.Millisecond))
			last := members.newest()
			server.Restart(t, mode)
			ready := time.Now()
			members.await(t, arrivals, last)
			t.Logf("after a restart (%s), all of them lead again within %v", mode, time.Since(ready).Round(100*time.Millisecond))
			if open := value[int](t, server.Conn(t), "SELECT count(*) FROM tenure_nodes WHERE status <> 'dead'"); open != arrivals {
				t.Errorf("%d nodes are alive; want %d", open, arrivals)
			}
		})
	}
}

// comeback are the terms of the members.
type comeback struct {
	joins   chan struct{} // a few at a time
	mu      sync.Mutex
	terms   map[string]int64 // of each member that leads now
	changed chan struct{}
}

// run is a member that leads the role of its name until ctx ends.
func (c *comeback) run(ctx context.Context, t *testing.T, backend *postgres.Backend, name string) {
	defer backend.Close()
	config := tenure.Config{Name: name, Logger: slog.New(slog.DiscardHandler)}
	c.joins <- struct{}{}
	member, err := membership.Join(ctx, backend, config, membership.Config{Name: "crowd"})
	<-c.joins
	if err != nil {
		if ctx.Err() == nil {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	defer func() { _ = member.Close(context.Background()) }() // the server may be gone
	election, err := member.Node().Election(tenure.NamedRole(name))
	if err != nil {
		t.Error(err)
		return
	}
	err = election.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
		c.set(name, term.Number())
		<-ctx.Done()
		c.set(name, 0)
		return ctx.Err()
	})
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// set records the term that a member leads, or 0.
func (c *comeback) set(name string, term int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.terms[name] = term
	close(c.changed)
	c.changed = make(chan struct{})
}

// newest returns the largest number of a term.
func (c *comeback) newest() (last int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, term := range c.terms {
		last = max(last, term)
	}
	return last
}

// await waits until so many members lead terms with larger numbers than last.
func (c *comeback) await(t *testing.T, want int, last int64) {
	t.Helper()
	limit := time.After(5 * time.Minute) // a bound for a hang
	for {
		c.mu.Lock()
		changed, leading := c.changed, 0
		for _, term := range c.terms {
			if term > last {
				leading++
			}
		}
		c.mu.Unlock()
		if leading == want {
			return
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("%d of %d members lead", leading, want)
		}
	}
}
