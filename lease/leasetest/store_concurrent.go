package leasetest

import (
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/lease/store"
)

// concurrently runs n functions at the same time and waits for them.
func (s *storeSuite) concurrently(n int, do func(i int)) {
	begin := make(chan struct{})
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			<-begin
			do(i)
		})
	}
	close(begin)
	running.Wait()
}

func contention(s *storeSuite) {
	const callers = 20
	for round := range 5 {
		namespace := string(rune('a' + round))
		ids, leases := make([]uuid.UUID, callers), make([]store.Lease, callers)
		s.concurrently(callers, func(i int) {
			ids[i] = uuid.New()
			var err error
			if leases[i], err = s.Elect(s.Context(), namespace, ids[i]); err != nil {
				s.Errorf("Elect: %v", err)
			}
		})
		winner := leases[0]
		for i, lease := range leases {
			if lease.Holder != winner.Holder || lease.Term != winner.Term {
				s.Errorf("round %d: caller %d got %+v, the first one got %+v", round, i, lease, winner)
			}
		}
		if !slices.Contains(ids, winner.Holder) || !s.leads(namespace, winner.Holder) {
			s.Errorf("round %d: the winner %s does not lead", round, winner.Holder)
		}
	}
}

// terms lets candidates elect and unregister concurrently and records the leader of each
// term.
func terms(s *storeSuite) {
	const candidates, rounds = 6, 15
	var mu sync.Mutex
	leaders := map[int64]uuid.UUID{}
	s.concurrently(candidates, func(int) {
		id, last := uuid.New(), int64(0)
		for range rounds {
			lease, err := s.Elect(s.Context(), "n", id)
			if err != nil {
				s.Errorf("Elect: %v", err)
				return
			}
			if lease.Term < last {
				s.Errorf("term %d follows term %d", lease.Term, last)
			}
			last = lease.Term
			mu.Lock()
			if before, known := leaders[lease.Term]; known && before != lease.Holder {
				s.Errorf("term %d has the leaders %s and %s", lease.Term, before, lease.Holder)
			}
			leaders[lease.Term] = lease.Holder
			mu.Unlock()
			if lease.Holder != id {
				continue
			}
			if err := s.Unregister(s.Context(), "n", id); err != nil {
				s.Errorf("Unregister: %v", err)
				return
			}
		}
	})
	if len(leaders) < 2 {
		s.Errorf("the leader never changed in %d terms", len(leaders))
	}
}

// trusted is a time during which a candidate treats its lease as valid.
type trusted struct {
	candidate  uuid.UUID
	from, till time.Time
}

// exclusion lets leaders fall silent and compares when each candidate treated its lease
// as valid: from the result of Elect to the end of the lease by the local clock.
func exclusion(s *storeSuite) {
	const candidates, changes = 4, 4
	var mu sync.Mutex
	var spans []trusted
	var last int64
	s.concurrently(candidates, func(int) {
		id := uuid.New()
		tick := time.NewTicker(s.window / 20)
		defer tick.Stop()
		for deadline := time.Now().Add(patience); ; <-tick.C {
			lease, err := s.Elect(s.Context(), "n", id)
			now := time.Now()
			mu.Lock()
			if err != nil || now.After(deadline) {
				s.Errorf("after %d terms: %v", last, err)
				last = changes + 1
			}
			last = max(last, lease.Term)
			over := last > changes
			if lease.Holder == id {
				spans = append(spans, trusted{id, now, lease.ReadAt.Add(lease.ValidFor)})
			}
			mu.Unlock()
			if over {
				return
			}
			if lease.Holder != id {
				continue
			}
			for lease.HeldBy(id) { // silent until the lease expires
				<-tick.C
			}
		}
	})
	slices.SortFunc(spans, func(a, b trusted) int { return a.from.Compare(b.from) })
	for i := 1; i < len(spans); i++ {
		before, after := spans[i-1], spans[i]
		if before.candidate != after.candidate && after.from.Before(before.till) {
			s.Errorf("%s led %v before the lease of %s expired", after.candidate, before.till.Sub(after.from), before.candidate)
		}
	}
}
