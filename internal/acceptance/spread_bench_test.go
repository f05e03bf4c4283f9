package acceptance_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	membership "github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// BenchmarkSharedRoles measures what shared roles cost as there are more of
// them, with three members in this process: how long until all roles of a member
// that died are led by the others, how many statements a second they send in all
// when nothing happens, and how much memory a role needs where it is led.
//
//	go test ./internal/acceptance -run '^$' -bench SharedRoles -benchtime 5x -timeout 0
func BenchmarkSharedRoles(b *testing.B) {
	server := pgtest.Start(b, pgtest.Options{Settings: map[string]string{"max_locks_per_transaction": "1024"}})
	for _, roles := range []int{1, 10, 100, 1000, 5000, 10_000, 20_000} {
		b.Run(strconv.Itoa(roles), func(b *testing.B) {
			c := &crowd{dsn: server.DSN(), schema: server.Schema(b), admin: server.Conn(b), seen: make(chan sighting, 4096)}
			s := &sharing{crowd: c, roles: membership.Partitions("part", roles), full: make(chan struct{}, 1)}
			s.measure(b)
		})
	}
}

// sharing is a crowd that shares roles.
type sharing struct {
	*crowd
	roles []membership.SpreadRole
	led   atomic.Int64  // roles that are led
	full  chan struct{} // receives when all are led
}

// sharer is a member that takes part.
type sharer struct {
	*mortal
	led  atomic.Int64
	dead atomic.Bool
	stop context.CancelFunc
	done sync.WaitGroup
}

func (s *sharing) measure(b *testing.B) {
	const members = 3
	before := memoryInUse()
	var present []*sharer
	for range members {
		present = append(present, s.enter(b))
	}
	s.settle(b, present)
	memory := float64(memoryInUse()-before) / float64(len(s.roles)) / 1024
	statements, _ := s.idle(b)
	var took time.Duration
	for b.Loop() {
		victim := present[0]
		s.drainFull()
		died := time.Now()
		// Its terms end, since it has lost its session; from here on they do not
		// count.
		victim.dead.Store(true)
		s.led.Add(-victim.led.Load())
		victim.die()
		if s.led.Load() < int64(len(s.roles)) {
			s.awaitFull(b)
		}
		took += time.Since(died)
		b.StopTimer()
		s.retire(b, victim)
		present = append(present[1:], s.enter(b))
		s.settle(b, present)
		b.StartTimer()
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(memory, "KB/role")
	b.ReportMetric(statements, "statements/s")
	b.ReportMetric(float64(took.Microseconds())/1000/float64(b.N), "failover-ms")
	for _, m := range present {
		s.retire(b, m)
	}
}

// enter adds a member.
func (s *sharing) enter(b *testing.B) *sharer {
	s.born++
	m := &sharer{mortal: s.join(b, "sharer"+strconv.Itoa(s.born))}
	if m.mortal == nil {
		b.FailNow()
	}
	spread, err := m.Spread("parts", membership.SpreadConfig{Roles: s.roles, MoveDelay: time.Millisecond})
	if err != nil {
		b.Fatal(err)
	}
	var ctx context.Context
	ctx, m.stop = context.WithCancel(context.Background())
	m.done.Go(func() {
		_ = spread.Run(ctx, func(ctx context.Context, _ *tenure.Term) error {
			s.count(m, 1)
			<-ctx.Done()
			s.count(m, -1)
			return context.Cause(ctx)
		})
	})
	return m
}

// count notes that a member leads a role more, or less.
func (s *sharing) count(m *sharer, roles int64) {
	m.led.Add(roles)
	if m.dead.Load() {
		return
	}
	if s.led.Add(roles) == int64(len(s.roles)) {
		select {
		case s.full <- struct{}{}:
		default:
		}
	}
}

func (s *sharing) drainFull() {
	select {
	case <-s.full:
	default:
	}
}

func (s *sharing) awaitFull(b *testing.B) {
	b.Helper()
	select {
	case <-s.full:
	case <-time.After(patience):
		b.Fatalf("%d of %d roles are led", s.led.Load(), len(s.roles))
	}
}

// settle waits until every member has its share.
func (s *sharing) settle(b *testing.B, present []*sharer) {
	b.Helper()
	share := int64(len(s.roles) / len(present))
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(3 * patience); ; <-tick.C {
		settled := s.led.Load() == int64(len(s.roles))
		for _, m := range present {
			settled = settled && m.led.Load() >= share
		}
		if settled {
			return
		}
		if time.Now().After(deadline) {
			b.Fatal("the roles are not shared evenly")
		}
	}
}

// retire ends what runs here of a member.
func (s *sharing) retire(b *testing.B, m *sharer) {
	m.stop()
	m.leave(b)
	m.done.Wait()
}
