package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
)

// leaderWatch checks that at most one node works at a time and that term numbers
// increase, and measures how long no node worked.
type leaderWatch struct {
	t       *testing.T
	working atomic.Int32
	number  atomic.Int64 // of the last term
	leads   chan string  // the name of each node that begins to work
	ended   atomic.Int64
	vacancy atomic.Int64                        // the longest one so far
	load    func(context.Context, *tenure.Term) // what a leader does, if anything
}

func newLeaderWatch(t *testing.T) *leaderWatch {
	return &leaderWatch{t: t, leads: make(chan string, 1000)}
}

// candidate opens a node that campaigns until it is ended, or the test is.
func (r *leaderWatch) candidate(b tenure.Backend, name string, lease time.Duration) (end func()) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	node, err := tenure.Open(ctx, b, tenure.Config{Name: name, Lease: lease})
	if err != nil {
		r.t.Fatalf("open %s: %v", name, err)
	}
	election, err := node.Election(tenure.NamedRole("scheduler"))
	if err != nil {
		r.t.Fatal(err)
	}
	life, cancelLife := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = election.Run(life, func(ctx context.Context, term *tenure.Term) error {
			r.work(ctx, name, term)
			return nil
		})
	}()
	end = sync.OnceFunc(func() {
		cancelLife()
		<-done
		closing, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = node.Close(closing)
	})
	r.t.Cleanup(end)
	return end
}

func (r *leaderWatch) work(ctx context.Context, name string, term *tenure.Term) {
	if r.working.Add(1) > 1 {
		r.t.Errorf("%s works while another does", name)
	}
	if last := r.number.Swap(term.Number()); term.Number() <= last {
		r.t.Errorf("%s leads term %d after term %d", name, term.Number(), last)
	}
	if ended := r.ended.Load(); ended > 0 {
		r.vacancy.Store(max(r.vacancy.Load(), time.Now().UnixNano()-ended))
	}
	r.leads <- name
	if r.load != nil {
		r.load(ctx, term)
	}
	<-ctx.Done()
	r.ended.Store(time.Now().UnixNano())
	r.working.Add(-1)
}

// next waits for a node to lead.
func (r *leaderWatch) next() string {
	r.t.Helper()
	select {
	case name := <-r.leads:
		return name
	case <-time.After(3 * patience):
		r.t.Fatal("no node leads in time")
		panic("unreachable")
	}
}
