package cluster

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/tenuretest"
)

// counting is a store that counts the calls of MarkDead.
type counting struct {
	*tenuretest.Database
	marked atomic.Int64
}

func (c *counting) MarkDead(context.Context, time.Duration) ([]uuid.UUID, error) {
	c.marked.Add(1)
	return nil, nil
}

func TestHeartbeatLoopQueriesOnlyIfANodeIsSilent(t *testing.T) {
	t.Parallel()
	const interval, threshold = 5 * time.Second, 15 * time.Second
	for name, c := range map[string]struct {
		silent, lease time.Duration
		status        tenure.NodeStatus
		keep          bool
		want          int64
	}{
		"for less than the threshold":               {14 * time.Second, 10 * time.Second, Active, false, 0},
		"for longer":                                {16 * time.Second, 10 * time.Second, Active, false, 3},
		"for longer, when others mark":              {16 * time.Second, 10 * time.Second, Active, true, 0},
		"for longer, but less than its lease":       {16 * time.Second, 20 * time.Second, Active, false, 0},
		"for longer than the lease of a long lease": {21 * time.Second, 20 * time.Second, Draining, false, 3},
		"because it is dead":                        {time.Hour, 10 * time.Second, Dead, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				quiet := slog.New(slog.DiscardHandler)
				store := &counting{Database: tenuretest.NewDatabase()}
				node, err := tenure.Open(t.Context(), store, tenure.Config{Logger: quiet})
				if err != nil {
					t.Fatal(err)
				}
				other := member(1)
				other.SilentFor, other.Lease, other.Status = c.silent, c.lease, c.status
				ask := func(context.Context) ([]tenure.Member, error) { return []tenure.Member{other}, nil }
				v := newView(ask, interval, node.Clock(), quiet)
				if err := v.read(t.Context()); err != nil {
					t.Fatal(err)
				}
				loop := &HeartbeatLoop{
					node: node, store: store, view: v, inFlight: new(InFlight),
					config: HeartbeatConfig{Interval: interval, DeadThreshold: threshold, SkipMarkingDead: c.keep},
				}
				ctx, cancel := context.WithTimeout(t.Context(), 3*interval+time.Second)
				defer cancel()
				if err := loop.Run(ctx); err != nil {
					t.Error(err)
				}
				if got := store.marked.Load(); got != c.want {
					t.Errorf("the database was asked %d times; want %d", got, c.want)
				}
				if err := node.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
