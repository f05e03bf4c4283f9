package sim

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/sessiontest"
)

// TestConformance runs the conformance suite of backends against the simulated
// database.
func TestConformance(t *testing.T) {
	sessiontest.RunIn(t, synctest.Test, func(t *testing.T) tenure.Backend {
		w := NewWorld(1, Network{Least: time.Millisecond, Most: 3 * time.Millisecond})
		t.Cleanup(w.Close)
		return newFleet(w)
	}, sessiontest.Registry, sessiontest.UniqueNames, sessiontest.Offers)
}

// databases is the database as a whole cluster reaches it: every node from a separate
// machine.
type databases struct {
	world *World
	own   *database // for reads outside sessions

	mu    sync.Mutex
	nodes map[uuid.UUID]*database
}

func newFleet(w *World) *databases {
	f := &databases{world: w, nodes: map[uuid.UUID]*database{}}
	f.own = f.arrive()
	return f
}

func (f *databases) arrive() *database {
	m := f.world.NewMachine()
	f.world.mu.Lock()
	defer f.world.mu.Unlock()
	return m.newProcess().database()
}

func (f *databases) Open(ctx context.Context, opening tenure.SessionOptions) (tenure.Session, error) {
	f.mu.Lock()
	d := f.nodes[opening.Node.ID]
	if d == nil {
		d = f.arrive()
		f.nodes[opening.Node.ID] = d
	}
	f.mu.Unlock()
	return d.Open(ctx, opening)
}

func (f *databases) Leaders(ctx context.Context, roles ...string) ([]tenure.Leader, error) {
	return f.own.Leaders(ctx, roles...)
}

func (f *databases) Request(ctx context.Context, request tenure.Request) error {
	return f.own.Request(ctx, request)
}
