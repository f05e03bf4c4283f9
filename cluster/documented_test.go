package cluster

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/tenuretest"
)

func TestZeroConfigGetsDocumentedTimes(t *testing.T) {
	t.Parallel()
	c := Config{}.withDefaults()
	if got := c.Heartbeat.DeadThreshold; got != 15*time.Second {
		t.Errorf("the dead threshold is %v, want 15s", got)
	}
	if got := c.Shutdown.DrainTimeout; got != 30*time.Second {
		t.Errorf("the drain timeout is %v, want 30s", got)
	}
	if got := c.Shutdown.withForce(7*time.Second, time.Second).ForceAfter; got != 45*time.Second {
		t.Errorf("a shutdown is forced after %v; want 45s: 30s to drain, 1s to stop and two leases of 7s", got)
	}
	if got := c.Shutdown.withForce(10*time.Second, 0).ForceAfter; got != time.Minute {
		t.Errorf("a shutdown is forced after %v with the default stop timeout, want 1m0s", got)
	}
}

// spreading is a member that shares roles, and when it began to lead each of them.
type spreading struct {
	member *Member
	spread *Spread
	stop   func()

	lock  sync.Mutex
	began map[time.Time]int // roles by the time
}

func newSpreading(t *testing.T, db Store, name string, roles []SpreadRole) *spreading {
	t.Helper()
	member, err := Join(t.Context(), db, tenure.Config{Name: name, Logger: slog.New(slog.DiscardHandler)}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := member.Spread("orders", SpreadConfig{Roles: roles})
	if err != nil {
		t.Fatal(err)
	}
	m := &spreading{member: member, spread: s, began: map[time.Time]int{}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { // ends with ctx; stop waits for it
		ended <- s.Run(ctx, func(ctx context.Context, _ *tenure.Term) error {
			m.lock.Lock()
			m.began[time.Now()]++
			m.lock.Unlock()
			<-ctx.Done()
			return nil
		})
	}()
	m.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := member.Close(context.WithoutCancel(ctx)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	return m
}

// join lets a second member join a member that leads all roles, and returns when after
// the joining it began to lead how many of them.
func joinLater(t *testing.T, check func(began map[time.Duration]int)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		first := newSpreading(t, db, "first", Partitions("orders", 1100))
		time.Sleep(time.Minute)
		second := newSpreading(t, db, "second", Partitions("orders", 1100))
		joined := time.Now()
		time.Sleep(time.Minute)
		began, sum := map[time.Duration]int{}, 0
		second.lock.Lock()
		for at, n := range second.began {
			began[at.Sub(joined)], sum = n, sum+n
		}
		second.lock.Unlock()
		if sum != 550 {
			t.Errorf("the second member began to lead %d roles, want 550", sum)
		}
		check(began)
		second.stop()
		first.stop()
	})
}

func TestRolesMoveOneSecondAfterAChange(t *testing.T) {
	t.Parallel()
	joinLater(t, func(began map[time.Duration]int) {
		first := time.Hour
		for at := range began {
			first = min(first, at)
		}
		if first < time.Second || first > 2*time.Second {
			t.Errorf("roles move %v after the joining, want 1s", first)
		}
	})
}

func TestRolesMoveInBatchesOf512(t *testing.T) {
	t.Parallel()
	joinLater(t, func(began map[time.Duration]int) {
		var sizes []int
		for _, at := range slices.Sorted(maps.Keys(began)) {
			sizes = append(sizes, began[at])
		}
		if want := []int{512, 38}; !slices.Equal(sizes, want) {
			t.Errorf("%v roles move at the same time, want %v", sizes, want)
		}
	})
}
