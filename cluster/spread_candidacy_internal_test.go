package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/tenuretest"
)

const patience = 30 * time.Second

// ledBy is the name of a node at the begin of its term.
type ledBy chan string

// share makes a node share one role, on a store where nothing happens at check intervals.
// The work ends when the term is stopping.
func (l ledBy) share(t *testing.T, store Store, name string) *Spread {
	t.Helper()
	m, err := Join(t.Context(), store, tenure.Config{
		Name: name, Logger: slog.New(slog.DiscardHandler), CheckInterval: time.Hour,
	}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	spread, err := m.Spread("orders", SpreadConfig{Roles: Partitions("orders", 1)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- spread.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
			l <- name
			select {
			case <-term.Stopping():
			case <-ctx.Done():
			}
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := m.Close(context.Background()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	spread.await(t, "planned", func() bool { return !spread.leaving && len(spread.plan.Placed) > 0 })
	return spread
}

// leads waits until a node leads the role.
func (l ledBy) leads(t *testing.T, name string) {
	t.Helper()
	if got := testkit.Receive(t, l, patience, name+" does not lead"); got != name {
		t.Fatalf("%s leads; want %s", got, name)
	}
}

// await waits for a condition on the fields that Spread.mu guards.
func (s *Spread) await(t *testing.T, what string, is func() bool) {
	t.Helper()
	testkit.AwaitWithin(t, patience, "the spread of "+s.member.node.Name()+" is "+what, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return is()
	})
}

// Work that returns when its term is stopping has not failed: its node accepts the role
// again.
func TestGracefulEndOfSharedRoleIsNoFailure(t *testing.T) {
	t.Parallel()
	db, led := tenuretest.NewDatabase(), make(ledBy, 10)
	a := led.share(t, db, "a")
	led.leads(t, "a")
	b := led.share(t, db, "b")
	for _, to := range []*Spread{b, a} {
		err := db.Request(t.Context(), tenure.Request{Kind: tenure.RequestHandOver, Role: "orders/0", Target: to.member.ID()})
		if err != nil {
			t.Fatalf("handing over to %s: %v", to.member.node.Name(), err)
		}
		led.leads(t, to.member.node.Name())
		if to == b {
			a.await(t, "done with the role", func() bool { return len(a.candidacies) == 0 })
		}
	}
}

// breaking is a store whose first session is lost while it acquires a role.
type breaking struct {
	*tenuretest.Database
	broken atomic.Bool
}

func (b *breaking) Open(ctx context.Context, options tenure.SessionOptions) (tenure.Session, error) {
	session, err := b.Database.Open(ctx, options)
	if err != nil {
		return nil, err
	}
	return breakingSession{session, session.(tenure.RegistrySession), b}, nil
}

type breakingSession struct {
	tenure.Session
	tenure.RegistrySession
	store *breaking
}

func (s breakingSession) TryAcquire(requests []tenure.AcquireRequest) ([]tenure.AcquireResult, error) {
	if s.store.broken.Swap(true) {
		return s.Session.TryAcquire(requests)
	}
	s.Abort()
	return nil, fmt.Errorf("%w: %w", tenure.ErrSessionLost, tenure.ErrConnection)
}

// A member whose session is lost during an attempt tries the role again in the next
// session, not only a check interval later.
func TestSharedRoleIsAcquiredAfterSessionLoss(t *testing.T) {
	t.Parallel()
	led := make(ledBy, 10)
	led.share(t, &breaking{Database: tenuretest.NewDatabase()}, "a")
	led.leads(t, "a")
}

// Work that returns after long terms does not keep the role vacant for longer each time.
func TestLongTermOfSharedRoleBeginsNewSeries(t *testing.T) {
	t.Parallel()
	const interval = 20 * time.Millisecond
	m, err := Join(t.Context(), tenuretest.NewDatabase(), tenure.Config{
		Name: "a", Logger: slog.New(slog.DiscardHandler), CheckInterval: interval,
	}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	spread, err := m.Spread("orders", SpreadConfig{Roles: Partitions("orders", 1)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	terms, failures := 0, 0
	var s *spreadRun
	s = newSpreadRun(ctx, spread, func(ctx context.Context, _ *tenure.Term) error {
		s.mu.Lock()
		terms, failures = terms+1, s.cooldowns["orders/0"].times
		s.mu.Unlock()
		if terms == 3 {
			cancel()
			return nil
		}
		select {
		case <-time.After(12 * interval): // the shortest long term
		case <-ctx.Done():
		}
		return errors.New("enough for today")
	})
	if err := s.run(ctx); err != nil {
		t.Fatal(err)
	}
	if terms < 3 || failures != 1 {
		t.Errorf("after %d terms, %d failures count; want 1 after 3 terms", terms, failures)
	}
}
