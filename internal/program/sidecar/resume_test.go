package sidecar

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure/internal/feed"
)

// TestResumedStreamMissesNoEvent: clients that are cut at random and come back see every event once and
// in order, or learn exactly how many they missed.
func TestResumedStreamMissesNoEvent(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { resumeAtRandom(t, rand.New(rand.NewPCG(seed, 0)), seed%2 == 1) })
		})
	}
}

// resumeAtRandom lets three clients follow a publisher. If they are sleepy they
// stay away until the feed has forgotten what they missed.
func resumeAtRandom(t *testing.T, random *rand.Rand, sleepy bool) {
	t.Helper()
	h := newHandler(t, Config{})
	client, _, _ := serveInMemory(t, h)
	const events = 4 * feed.MaxRetained
	origin := h.feed.Position(0).String()
	var group sync.WaitGroup
	for range 3 {
		choose := rand.New(rand.NewPCG(random.Uint64(), 0))
		group.Go(func() {
			last, seen, gaps := origin, 0, 0
			for seen < events {
				f := follow(t, client, inMemory, last)
				for range choose.IntN(200) {
					m, err := f.next()
					if err != nil || m.kind == kindDropped {
						break
					}
					if m.kind == kindGap {
						gap := decode[gapRecord](t, m.data)
						seen += int(*gap.Missed)
						gaps++
						continue
					}
					if got := number(t, m); got != seen+1 {
						t.Errorf("%d follows %d", got, seen)
						return
					}
					if seen++; seen == events {
						break
					}
				}
				last = f.last
				f.close()
				away := time.Duration(choose.IntN(100)) * time.Millisecond
				if sleepy && choose.IntN(10) == 0 {
					away = 10 * time.Second
				}
				time.Sleep(away)
			}
			if !sleepy && gaps > 0 {
				t.Errorf("a client that was never away for long has missed events %d times", gaps)
			}
		})
	}
	for i := 0; i < events; {
		burst := min(1+random.IntN(20), events-i)
		publish(h, i+1, i+burst, 10)
		i += burst
		time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond)
	}
	group.Wait()
}
