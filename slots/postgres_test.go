package slots_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/slots"
)

// childVariable makes the test binary run as a separate node.
const childVariable = "TENURE_SLOTS_TEST_NODE"

// child is the configuration of such a node. It reports "begin" and "end" of the work
// in each term, with the slot as the sequence, and leaves at the end of its input.
type child struct {
	DSN, Schema, Name string
	Count             int
}

func runChild(told string) int {
	var c child
	err := json.Unmarshal([]byte(told), &c)
	if err == nil {
		err = c.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (c child) run() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin) // an error is an end, too
	}()
	backend, err := postgres.New(c.DSN, postgres.Config{Schema: c.Schema})
	if err != nil {
		return err
	}
	defer backend.Close()
	node, err := tenure.Open(ctx, backend, tenure.Config{
		Name: c.Name, Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return err
	}
	defer node.Close(context.Background())
	set, err := slots.New(node, "worker", slots.Config{Count: c.Count})
	if err != nil {
		return err
	}
	children.Send(children.Report{Kind: "ready"})
	return set.Run(ctx, func(ctx context.Context, slot int, term *tenure.Term) error {
		children.Send(children.Report{Kind: "begin", Sequence: int64(slot), Term: term.Number()})
		<-ctx.Done()
		children.Send(children.Report{Kind: "end", Sequence: int64(slot), Term: term.Number()})
		return nil
	})
}

// turn is the work of a node in a slot.
type turn struct {
	node       string
	slot, term int64
	begun      int64
	ended      int64 // 0: not yet
}

// turns records who works in which slot.
type turns struct {
	t *testing.T

	mu      sync.Mutex
	changed chan struct{} // closed at the next change
	all     []turn
}

func (l *turns) note(node string, r children.Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch r.Kind {
	case "begin":
		l.all = append(l.all, turn{node: node, slot: r.Sequence, term: r.Term, begun: r.At})
	case "end":
		for i, turn := range l.all {
			if turn.node == node && turn.term == r.Term {
				l.all[i].ended = r.At
			}
		}
	default:
		return
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// kill records that a node is killed now: it reports no end.
func (l *turns) kill(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, turn := range l.all {
		if turn.node == node && turn.ended == 0 {
			l.all[i].ended = time.Now().UnixNano()
		}
	}
}

// await waits until this many slots have a leader, and returns the node of each.
func (l *turns) await(count int) map[int64]string {
	l.t.Helper()
	limit := time.After(testkit.Patience)
	for {
		l.mu.Lock()
		leaders, changed := map[int64]string{}, l.changed
		for _, turn := range l.all {
			if turn.ended == 0 {
				leaders[turn.slot] = turn.node
			}
		}
		l.mu.Unlock()
		if len(leaders) == count {
			return leaders
		}
		select {
		case <-changed:
		case <-limit:
			l.t.Fatalf("leaders %v; want %d", leaders, count)
		}
	}
}

// check finds two nodes in one slot, one node in two slots, and terms that do not
// increase.
func (l *turns) check() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, a := range l.all {
		for _, b := range l.all[:i] {
			overlap := (b.ended == 0 || a.begun < b.ended) && (a.ended == 0 || b.begun < a.ended)
			if overlap && (a.slot == b.slot || a.node == b.node) {
				l.t.Errorf("%+v and %+v overlap", b, a)
			}
			if a.slot == b.slot && (a.begun > b.begun) != (a.term > b.term) {
				l.t.Errorf("the terms of %+v and %+v are in another order", b, a)
			}
		}
	}
}

// Of five processes three work. When one is killed or leaves, a standby takes over its
// slot: the killed one's within less than a lease.
func TestStandbysTakeOverSlots(t *testing.T) {
	t.Parallel()
	i := postgrestest.New(t)
	found := &turns{t: t, changed: make(chan struct{})}
	nodes := map[string]*children.Child{}
	for number := range 5 {
		name := fmt.Sprintf("n%d", number)
		nodes[name] = children.Spawn(t, childVariable, child{i.Server.DSN(), i.Schema, name, 3}, children.Options{
			Name: name, Note: func(r children.Report) bool { found.note(name, r); return true },
		})
	}
	for _, node := range nodes {
		children.Await(t, node, "ready", time.Time{})
	}
	first := found.await(3)[1]

	found.kill(first)
	killed := time.Now()
	nodes[first].Kill()
	now := found.await(3)
	if took := time.Since(killed); took > 8*time.Second {
		t.Errorf("a standby took over after %v; the lease is 10s", took)
	}
	left := now[2]
	if err := nodes[left].EndInput(); err != nil {
		t.Fatal(err)
	}
	<-nodes[left].Ended()
	last := found.await(3)
	for slot, node := range last {
		if node == first || node == left {
			t.Errorf("slot %d is led by %s, which has ended", slot, node)
		}
	}
	found.check()
	// The slots are ordinary roles: every one has its leader and its term in the database.
	recorded, err := i.Backend.Leaders(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, leader := range recorded {
		for slot, node := range last {
			if leader.Role == slots.RoleName("worker", int(slot)) && leader.NodeName == node {
				delete(last, slot)
			}
		}
	}
	if len(recorded) != 3 || len(last) > 0 {
		t.Errorf("leaders in the database: %+v; without a record: %v", recorded, last)
	}
}
