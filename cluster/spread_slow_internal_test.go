package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/tenuretest"
)

// slowStore is the database as a node sees it whose machine is busy.
type slowStore struct {
	*tenuretest.Database
	delay   time.Duration // of each attempt to acquire roles
	most    func() int    // roles that an attempt acquires
	unheard atomic.Int64  // offers that fail before one succeeds
	offers  atomic.Int64  // that were made
}

func (s *slowStore) Open(ctx context.Context, options tenure.SessionOptions) (tenure.Session, error) {
	session, err := s.Database.Open(ctx, options)
	if err != nil {
		return nil, err
	}
	return slowSession{session, session.(tenure.RegistrySession), s}, nil
}

func (s *slowStore) Request(ctx context.Context, request tenure.Request) error {
	if request.Offer {
		s.offers.Add(1)
		if s.unheard.Add(-1) >= 0 {
			return tenure.ErrConnection
		}
	}
	return s.Database.Request(ctx, request)
}

type slowSession struct {
	tenure.Session
	tenure.RegistrySession
	store *slowStore
}

func (s slowSession) TryAcquire(requests []tenure.AcquireRequest) ([]tenure.AcquireResult, error) {
	time.Sleep(s.store.delay)
	n := len(requests)
	if s.store.most != nil {
		n = min(n, s.store.most())
	}
	results, err := s.Session.TryAcquire(requests[:n])
	for range requests[n:] {
		results = append(results, tenure.AcquireResult{Outcome: tenure.OutcomeHeld})
	}
	return results, err
}

// evenAfter returns how long it takes until members lead all of n roles in shares that differ
// by at most one.
func evenAfter(t *testing.T, n int, members ...*spreading) time.Duration {
	t.Helper()
	begun := time.Now()
	testkit.AwaitNil(t, 10*time.Minute, func() error {
		var shares []int
		sum := 0
		for _, m := range members {
			held := len(m.spread.Held())
			shares, sum = append(shares, held), sum+held
		}
		if sum == n && slices.Max(shares)-slices.Min(shares) <= 1 {
			return nil
		}
		return fmt.Errorf("the members lead %v of %d roles", shares, n)
	})
	return time.Since(begun)
}

// Thousands of roles move in seconds where each attempt to acquire roles takes long.
func TestManyRolesMoveSoonOnBusyMachine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const roles, limit = 3000, 10 * time.Second
		db := &slowStore{Database: tenuretest.NewDatabase(), delay: 200 * time.Millisecond}
		first := newSpreading(t, db, "first", Partitions("orders", roles))
		time.Sleep(time.Minute)
		second := newSpreading(t, db, "second", Partitions("orders", roles))
		if took := evenAfter(t, roles, first, second); took > limit {
			t.Errorf("shares are equal %v after a member has joined, want at most %v", took, limit)
		}
		second.stop()
		first.stop()
	})
}

// A member that acquires its roles slowly keeps its share: no other member stands in for it.
func TestSlowMemberIsNotIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const roles = 60
		db := tenuretest.NewDatabase()
		slow := newSpreading(t, &slowStore{Database: db, delay: 300 * time.Millisecond, most: func() int { return 1 }}, "slow", Partitions("orders", roles))
		fast := newSpreading(t, db, "fast", Partitions("orders", roles))
		evenAfter(t, roles, slow, fast)
		led := 0
		fast.lock.Lock()
		for _, n := range fast.began {
			led += n
		}
		fast.lock.Unlock()
		if led != roles/2 {
			t.Errorf("the other member led %d roles, want its share of %d: it stood in for a member that made progress", led, roles/2)
		}
		fast.stop()
		slow.stop()
	})
}

// standIn lets a member join one that leads no role before awake is set, and returns both
// when the second one leads all roles.
func standIn(t *testing.T, roles int, awake *atomic.Bool) (idle, other *spreading, store *slowStore) {
	t.Helper()
	shared := Partitions("orders", roles)
	for i := range shared { // a member gives up the roles that prefer another one
		shared[i].PreferredNode = []string{"idle", "other"}[i%2]
	}
	db := tenuretest.NewDatabase()
	idle = newSpreading(t, &slowStore{Database: db, most: func() int {
		if awake.Load() {
			return roles
		}
		return 0
	}}, "idle", shared)
	time.Sleep(time.Minute)
	store = &slowStore{Database: db}
	other = newSpreading(t, store, "other", shared)
	interval := other.member.node.Timing().CheckInterval
	testkit.AwaitWithin(t, 4*interval, "the other member leads all roles", func() bool { return len(other.spread.Held()) == roles })
	return idle, other, store
}

// A member that stood in for another one hands the roles back soon after the other one can
// lead them, although each offer fails once.
func TestStandInHandsBackSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const roles = 60
		var awake atomic.Bool
		idle, other, store := standIn(t, roles, &awake)
		store.unheard.Store(roles / 2)
		awake.Store(true)
		limit := 2*other.member.node.Timing().CheckInterval + time.Second
		if took := evenAfter(t, roles, idle, other); took > limit {
			t.Errorf("shares are equal %v after the member can lead again, want at most %v", took, limit)
		}
		if n := store.offers.Load(); n < roles {
			t.Errorf("%d offers, want at least %d: the other member did not stand in for the idle one", n, roles)
		}
		other.stop()
		idle.stop()
	})
}

// A member that accepts roles and does not lead them gets them back only after ten check
// intervals: each time they have no leader for a while.
func TestStandInKeepsRolesThatWereNotLed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const roles = 60
		var never atomic.Bool
		idle, other, store := standIn(t, roles, &never)
		time.Sleep(18 * other.member.node.Timing().CheckInterval)
		if n, most := store.offers.Load(), int64(roles); n > most {
			t.Errorf("%d offers of %d roles in 18 check intervals, want at most %d", n, roles/2, most)
		}
		other.stop()
		idle.stop()
	})
}
