package cluster_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/tenuretest"
)

// forgetful is a store on which the node "drained" loses its session before it reads a request.
type forgetful struct {
	*tenuretest.Database
	node *tenure.Node

	mu     sync.Mutex // held while a request is recorded
	forget bool       // the next request is not read
	lose   bool       // the next read of requests loses the session
}

func (f *forgetful) Open(ctx context.Context, options tenure.SessionOptions) (tenure.Session, error) {
	session, err := f.Database.Open(ctx, options)
	if err != nil || options.Node.Name != "drained" {
		return session, err
	}
	return forgetfulSession{session, session.(tenure.RegistrySession), f}, nil
}

type forgetfulSession struct {
	tenure.Session
	tenure.RegistrySession
	store *forgetful
}

func (s forgetfulSession) Requests() ([]tenure.Request, error) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if !s.store.lose {
		return s.Session.Requests()
	}
	s.store.lose = false
	s.Abort()
	return nil, fmt.Errorf("%w: %w", tenure.ErrSessionLost, tenure.ErrConnection)
}

// Request records a request, and returns when the node has lost its session and opened
// the next one.
func (f *forgetful) Request(ctx context.Context, request tenure.Request) error {
	changed, stop := f.node.Subscribe()
	defer stop()
	before := f.incarnation(ctx)
	if lost, err := f.record(ctx, request); !lost {
		return err
	}
	for f.incarnation(ctx) <= before || !f.node.Connected() {
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (f *forgetful) record(ctx context.Context, request tenure.Request) (lost bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget, f.lose = false, f.forget
	return f.lose, f.Database.Request(ctx, request)
}

// incarnation returns the number of the node's session.
func (f *forgetful) incarnation(ctx context.Context) int64 {
	members, _ := f.Members(ctx)
	for _, m := range members {
		if m.ID == f.node.ID() {
			return m.Incarnation
		}
	}
	return 0
}

// A node that loses its session before it reads a request gets the request in the next
// session: otherwise the caller would wait for what nothing does.
func TestRequestOutlivesSessionThatHasNotReadIt(t *testing.T) {
	t.Parallel()
	store := &forgetful{Database: tenuretest.NewDatabase()}
	for _, name := range []string{"other", "drained"} {
		node, err := tenure.Open(t.Context(), store, tenure.Config{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = node.Close(context.Background()) })
		store.node = node
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	store.forget = true
	if err := cluster.DrainNode(ctx, store, store.node.ID(), cluster.DrainOptions{By: "ann"}); err != nil {
		t.Fatalf("DrainNode: %v", err)
	}
	if d := store.node.Description(); d.Status != tenure.StatusDraining || d.StatusBy != "ann" {
		t.Errorf("the node is %s by %q", d.Status, d.StatusBy)
	}
	store.forget = true
	if err := cluster.UndrainNode(ctx, store, store.node.ID(), "bob"); err != nil {
		t.Fatalf("UndrainNode: %v", err)
	}
	if d := store.node.Description(); d.Status != tenure.StatusActive || d.StatusBy != "bob" {
		t.Errorf("the node is %s by %q", d.Status, d.StatusBy)
	}
}
