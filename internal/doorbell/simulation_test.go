package doorbell

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure/internal/wakeup"
)

var (
	schedules = flag.Int("schedules", 150, "how many random schedules are simulated")
	firstSeed = flag.Uint64("seed", 1, "the seed of the first one")
)

// Readers that never poll handle every row soon after it can be read, whatever
// transactions, savepoints, prepared transactions and lost connections do, and rest when
// nothing more is committed.
func TestNoRowIsMissed(t *testing.T) {
	t.Parallel()
	for seed := *firstSeed; seed < *firstSeed+uint64(*schedules); seed++ {
		synctest.Test(t, func(t *testing.T) { simulate(t, seed) })
		if t.Failed() {
			t.Fatalf("replay it with -run TestNoRowIsMissed -schedules=1 -seed=%d", seed)
		}
	}
}

func simulate(t *testing.T, seed uint64) {
	s := newServer(seed, 1+int(seed%3))
	ctx, cancel := context.WithCancel(t.Context())
	var reading, writing sync.WaitGroup
	defer reading.Wait()
	defer cancel()
	for _, r := range s.readers {
		r.bell = New(2*time.Millisecond, func() { wakeup.Send(r.woken) })
		reading.Go(func() { r.attend(ctx) })
		reading.Go(func() { r.read(ctx) })
	}
	pause := []time.Duration{0, 5 * time.Millisecond, 100 * time.Millisecond}[s.roll(3)]
	for range 1 + s.roll(8) {
		writing.Go(func() {
			for range 40 {
				time.Sleep(s.upTo(pause))
				s.transact()
			}
		})
	}
	loses := s.roll(4) == 0
	for range 3 {
		time.Sleep(s.upTo(200 * time.Millisecond))
		if r := s.readers[s.roll(len(s.readers))]; loses {
			wakeup.Send(r.lost)
		}
	}
	writing.Wait()
	time.Sleep(time.Second)
	s.check(t)
	before := s.looks()
	time.Sleep(time.Hour)
	if looks := s.looks() - before; looks > 0 {
		t.Errorf("seed %d: the readers look %d times in an hour without commits; want none", seed, looks)
	}
}

// transact runs a random transaction.
func (s *server) transact() {
	t := &transaction{server: s, frames: make([]frame, 1)}
	for range 1 + s.roll(5) {
		switch s.roll(8) {
		case 0:
			t.frames = append(t.frames, frame{})
		case 1:
			if len(t.frames) > 1 {
				t.rollBackTo(1 + s.roll(len(t.frames)-1))
			}
		case 2:
			time.Sleep(s.upTo(30 * time.Millisecond))
		case 3:
			if s.roll(20) == 0 {
				time.Sleep(s.upTo(3 * time.Second))
			}
		default:
			t.insert()
		}
		time.Sleep(s.upTo(time.Millisecond))
	}
	switch s.roll(10) {
	case 0:
		t.end(false)
	case 1: // the server prepares no transaction that has notified
		if !t.rings() {
			time.Sleep(s.upTo(time.Second))
		}
		t.end(!t.rings())
	default:
		t.end(true)
	}
}

// check compares the times at which rows could be read and were handled. A reader that
// loses its connection has a new one in milliseconds.
func (s *server) check(t *testing.T) {
	const soon = 60 * time.Millisecond
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.readers {
		for _, row := range s.rows {
			handled, found := r.handled[row]
			if delay := handled.Sub(row.readable); !found || delay > soon {
				t.Errorf("reader %d handled a row of transaction %d %s; want at most %v after it could be read", r.slot, row.id, after(delay, found), soon)
				return
			}
		}
	}
}

func after(delay time.Duration, found bool) string {
	if !found {
		return "never"
	}
	return fmt.Sprint(delay, " later")
}

func (s *server) looks() (sum int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.readers {
		sum += r.looks
	}
	return sum
}

// A reader that finds rows stays awake, also while it handles them: writers that commit all
// the time hardly ever notify. A reader that is rung now and then stays asleep and looks once
// for each ring.
func TestBusyReaderIsRungRarely(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pause, handler time.Duration
		least, most    int // notifications of 1,000 commits
		looksOfEach    int
	}{
		{time.Millisecond, 0, 0, 20, 2},
		{10 * time.Millisecond, 0, 0, 20, 12},
		{time.Millisecond, 300 * time.Millisecond, 0, 20, 2},
		{100 * time.Millisecond, 0, 1000, 1000, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(1, 1)
			ctx, cancel := context.WithCancel(t.Context())
			var reading sync.WaitGroup
			defer reading.Wait()
			defer cancel()
			r := s.readers[0]
			r.handler = test.handler
			r.bell = New(2*time.Millisecond, func() { wakeup.Send(r.woken) })
			reading.Go(func() { r.attend(ctx) })
			reading.Go(func() { r.read(ctx) })
			time.Sleep(time.Second)
			before := s.looks()
			for range 1000 {
				tx := &transaction{server: s, frames: make([]frame, 1)}
				tx.insert()
				tx.end(true)
				time.Sleep(test.pause)
			}
			time.Sleep(time.Second)
			if test.handler == 0 {
				s.check(t)
			}
			if s.rings < test.least || s.rings > test.most {
				t.Errorf("a commit every %v, handled in %v: %d of 1000 notify; want %d to %d", test.pause, test.handler, s.rings, test.least, test.most)
			}
			if looks := s.looks() - before; looks > 1000*test.looksOfEach+50 {
				t.Errorf("a commit every %v: %d looks for 1000 commits; want at most %d for each", test.pause, looks, test.looksOfEach)
			}
		})
	}
}
