package tenure_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
)

// Goroutines of one process queue for a role: each gets its own term, in the order
// of their calls.
func TestCampaignsOfOneNodeQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := open(t, newDatabase())
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		const callers = 8
		var (
			leading     atomic.Int64
			callersDone sync.WaitGroup
			terms       sync.Map
		)
		order := make(chan int, callers)
		for i := range callers {
			callersDone.Go(func() {
				term, err := e.Campaign(t.Context())
				if err != nil {
					t.Errorf("caller %d: %v", i, err)
					return
				}
				if n := leading.Add(1); n != 1 {
					t.Errorf("%d callers lead at the same time", n)
				}
				if _, again := terms.LoadOrStore(term.Number(), i); again {
					t.Errorf("two callers have the term %d", term.Number())
				}
				order <- i
				time.Sleep(time.Second)
				leading.Add(-1)
				if err := term.Resign(t.Context()); err != nil {
					t.Errorf("caller %d: %v", i, err)
				}
			})
			synctest.Wait() // it waits for its turn
		}
		callersDone.Wait()
		close(order)
		next := 0
		for i := range order {
			want(t, "the next caller", i, next)
			next++
		}
		want(t, "callers that led", next, callers)
	})
}

// A caller whose context ends leaves the queue, and the next one gets its turn.
func TestCanceledCampaignLeavesQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := open(t, newDatabase())
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		first, err := e.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var waiting sync.WaitGroup
		waiting.Go(func() {
			_, err := e.Campaign(short)
			wantError(t, "the caller whose context ended", err, context.DeadlineExceeded)
		})
		synctest.Wait()
		waiting.Go(func() {
			term, err := e.Campaign(t.Context())
			if err != nil {
				t.Errorf("the last caller: %v", err)
				return
			}
			_ = term.Resign(t.Context())
		})
		time.Sleep(2 * time.Second)
		wantError(t, "Run while a caller of Campaign leads", e.Run(t.Context(), nil), tenure.ErrAlreadyStarted)
		if err := first.Resign(t.Context()); err != nil {
			t.Error(err)
		}
		waiting.Wait()
	})
}

// The caller of Campaign must resign also a term that was lost. If it does not, the next
// Campaign and Close say so, and do not wait for ever.
func TestTermThatIsNotResignedIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		term, err := e.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		db.last().kill()
		<-term.Context().Done()
		begun := time.Now()
		_, err = e.Campaign(t.Context())
		wantError(t, "Campaign", err, tenure.ErrAlreadyStarted)
		wantError(t, "Campaign", err, tenure.ErrWorkRunning)
		want(t, "Campaign waited", time.Since(begun), 10*time.Second)
		limited, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		closed := node.Close(limited)
		for what, err := range map[string]error{"Campaign": err, "Close": closed} {
			if text := "Resign was not called for term"; !strings.Contains(err.Error(), text) {
				t.Errorf("%s: got %q, want a text with %q", what, err, text)
			}
		}
		wantError(t, "Close", closed, tenure.ErrWorkRunning)
		if err := term.Resign(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Of several callers of TryAcquire at most one gets a term, also while the node leads.
func TestTryAcquireIsGrantedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := open(t, newDatabase())
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		var (
			callers sync.WaitGroup
			granted atomic.Pointer[tenure.Term]
		)
		for range 8 {
			callers.Go(func() {
				term, err := e.TryAcquire(t.Context())
				switch {
				case err == nil:
					if !granted.CompareAndSwap(nil, term) {
						t.Error("a second caller has got a term")
					}
				case !errors.Is(err, tenure.ErrHeld):
					t.Errorf("got %v, want ErrHeld", err)
				}
			})
		}
		callers.Wait()
		if granted.Load() == nil {
			t.Fatal("no caller has got a term")
		}
		_, err := e.TryAcquire(t.Context())
		wantError(t, "while the node leads", err, tenure.ErrHeld)
		want(t, "the term continues", granted.Load().Valid(), true)
		if err := granted.Load().Resign(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
