package slots_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/retry"
	"github.com/exactly-one/tenure/slots"
	"github.com/exactly-one/tenure/tenuretest"
)

func open(t *testing.T, db tenure.Backend, name string) *tenure.Node {
	t.Helper()
	node, err := tenure.Open(t.Context(), db, tenure.Config{Name: name, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNode(t, node) })
	return node
}

func closeNode(t *testing.T, node *tenure.Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := node.Close(ctx); err != nil {
		t.Error(err)
	}
}

// board records who works in which slot.
type board struct {
	t *testing.T

	mu   sync.Mutex
	work map[int]string
}

// run runs the slots of a node until the test ends.
func (b *board) run(node *tenure.Node, cfg slots.Config) {
	b.t.Helper()
	set, err := slots.New(node, "worker", cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- set.Run(ctx, b.worker(node)) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, tenure.ErrStopped) {
			b.t.Error(err)
		}
	})
	synctest.Wait()
}

func (b *board) worker(node *tenure.Node) slots.Work {
	return func(ctx context.Context, slot int, term *tenure.Term) error {
		b.mu.Lock()
		if other, ok := b.work[slot]; ok {
			b.t.Errorf("%s begins in slot %d, in which %s works", node.Name(), slot, other)
		}
		if name := slots.RoleName("worker", slot); term.Role().Name() != name || !term.Valid() {
			b.t.Errorf("slot %d has the term %d of %s, valid %v", slot, term.Number(), term.Role(), term.Valid())
		}
		b.work[slot] = node.Name()
		b.mu.Unlock()
		<-ctx.Done()
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.work, slot)
		return nil
	}
}

func (b *board) want(what, wanted string) {
	b.t.Helper()
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	got := slices.Sorted(maps.Values(b.work))
	if strings.Join(got, " ") != wanted {
		b.t.Errorf("%s: nodes %v work, want %s", what, got, wanted)
	}
}

// slotOf returns the slot of a node.
func (b *board) slotOf(node *tenure.Node) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for slot, name := range b.work {
		if name == node.Name() {
			return slots.RoleName("worker", slot)
		}
	}
	b.t.Fatalf("%s has no slot: %v", node.Name(), b.work)
	return ""
}

func newBoard(t *testing.T) (*board, *tenuretest.Database) {
	return &board{t: t, work: map[int]string{}}, tenuretest.NewDatabase()
}

// One node has one slot. A standby takes the slot of a node that leaves, drains or is
// asked to hand over.
func TestNodesHoldOneSlotEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, db := newBoard(t)
		var nodes []*tenure.Node
		for _, name := range []string{"a", "b", "c", "d"} {
			node := open(t, db, name)
			nodes = append(nodes, node)
			b.run(node, slots.Config{Count: 3})
		}
		b.want("at first", "a b c")
		closeNode(t, nodes[1])
		b.want("after b has left", "a c d")

		e := open(t, db, "e")
		b.run(e, slots.Config{Count: 3})
		if err := nodes[0].Drain(t.Context(), func(string) uuid.UUID { return nodes[2].ID() }); err != nil {
			t.Fatal(err)
		}
		b.want("after a has drained, with a target that has no room", "c d e")
		if err := nodes[0].Undrain(t.Context()); err != nil {
			t.Fatal(err)
		}
		handOver := tenure.Request{Kind: tenure.RequestHandOver, Role: b.slotOf(nodes[2]), Target: nodes[0].ID(), By: "test"}
		if err := db.Request(t.Context(), handOver); err != nil {
			t.Fatal(err)
		}
		b.want("after a hand-over to a", "a d e")
		handOver.Role, handOver.Target = b.slotOf(nodes[0]), nodes[3].ID()
		if err := db.Request(t.Context(), handOver); !errors.Is(err, tenure.ErrNotActive) {
			t.Fatalf("got %v, want %v", err, tenure.ErrNotActive)
		}
		time.Sleep(time.Second)
		b.want("after a request to hand over to a node without room", "a d e")
	})
}

func TestNodesHoldUpToPerNodeSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, db := newBoard(t)
		a, c := open(t, db, "a"), open(t, db, "c")
		b.run(a, slots.Config{Count: 3, PerNode: 2})
		b.want("one node", "a a")
		b.run(c, slots.Config{Count: 3, PerNode: 2})
		b.want("two nodes", "a a c")
		closeNode(t, a)
		b.want("after a has left", "c c")
	})
}

// Done for one slot ends Run for all, without an error; so does a retry strategy that
// gives up, with its error.
func TestRunEndsForAllSlots(t *testing.T) {
	broken := errors.New("broken")
	for _, test := range []struct {
		name           string
		limit          int
		result, wanted error
	}{
		{"done", 1, tenure.Done, nil}, {"error", 1, broken, broken},
		{"done in one of two", 2, tenure.Done, nil}, {"error in one of two", 2, broken, broken},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := open(t, tenuretest.NewDatabase(), "a")
				never := retry.Func(func(retry.Failure) (time.Duration, bool) { return 0, false })
				set, err := slots.New(node, "worker", slots.Config{Count: 3, PerNode: test.limit, Election: tenure.ElectionConfig{WorkRetry: never}})
				if err != nil {
					t.Fatal(err)
				}
				var begun atomic.Int32
				err = set.Run(t.Context(), func(ctx context.Context, _ int, _ *tenure.Term) error {
					if begun.Add(1) == 1 {
						return test.result
					}
					<-ctx.Done()
					return nil
				})
				if !errors.Is(err, test.wanted) {
					t.Errorf("Run: %v, want %v", err, test.wanted)
				}
				if n := int(begun.Load()); n > test.limit {
					t.Errorf("%d calls of work; at most %d may run", n, test.limit)
				}
				for _, e := range set.Elections() {
					if e.State() != tenure.Stopped {
						t.Errorf("%s is %s", e.Role(), e.State())
					}
				}
			})
		})
	}
}

func TestConfigIsValidated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := open(t, tenuretest.NewDatabase(), "a")
		long := strings.Repeat("x", 254)
		for _, test := range []struct {
			name   string
			cfg    slots.Config
			wanted error
		}{
			{"worker", slots.Config{}, tenure.ErrInvalidConfig},
			{"worker", slots.Config{Count: -1}, tenure.ErrInvalidConfig},
			{"worker", slots.Config{Count: 101}, tenure.ErrInvalidConfig},
			{"worker", slots.Config{Count: 2, PerNode: 3}, tenure.ErrInvalidConfig},
			{"worker", slots.Config{Count: 2, PerNode: -1}, tenure.ErrInvalidConfig},
			{"worker", slots.Config{Count: 2, Election: tenure.ElectionConfig{Group: "g", GroupLimit: 1}}, tenure.ErrInvalidConfig},
			{"", slots.Config{Count: 2}, tenure.ErrInvalidRole},
			{long, slots.Config{Count: 2}, tenure.ErrInvalidRole},
		} {
			if _, err := slots.New(node, test.name, test.cfg); !errors.Is(err, test.wanted) {
				t.Errorf("%.10q, %+v: %v, want %v", test.name, test.cfg, err, test.wanted)
			}
		}
		if all := node.Elections(); len(all) != 0 {
			t.Errorf("%d elections of refused sets", len(all))
		}
	})
}
