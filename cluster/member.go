package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// Store is a backend that keeps a registry of nodes. *postgres.Backend is one.
// What it answers does not go through a node's session.
type Store interface {
	tenure.Backend

	// Members returns the nodes that the registry has, the dead among them,
	// oldest session first.
	Members(ctx context.Context) ([]tenure.Member, error)
	// MarkDead marks the nodes as dead that were silent for longer than the
	// threshold and their own lease, and returns their ids.
	MarkDead(ctx context.Context, threshold time.Duration) ([]uuid.UUID, error)
	// Forget removes a dead node. It returns an error that matches
	// tenure.ErrUnknownNode if there is no dead node of this id.
	Forget(ctx context.Context, node uuid.UUID) error
	// ForgetDead removes the dead nodes that were heard of last longer ago than
	// a time, and returns their ids.
	ForgetDead(ctx context.Context, olderThan time.Duration) ([]uuid.UUID, error)
}

// Member is this process's part in a cluster: a node, and what it tells and
// knows of the others. It is safe for concurrent use.
type Member struct {
	node   *tenure.Node
	store  Store
	config Config
	view   *view

	leave context.CancelFunc // ends what the member runs
	group sync.WaitGroup     // every goroutine of the member
}

// Join opens a node and makes it a member of the cluster. It returns when the
// registry has the node and the node has read the registry; see
// [Member.WaitReady] for when it accepts work. Errors are those of
// [tenure.Open]; with UniqueNames also tenure.ErrNameTaken. The context bounds
// joining only.
func Join(ctx context.Context, store Store, nodeConfig tenure.Config, config Config) (*Member, error) {
	nodeConfig.Description = tenure.Description{Status: tenure.StatusActive}
	node, err := tenure.Open(ctx, store, nodeConfig)
	if err != nil {
		return nil, fmt.Errorf("joining the cluster: %w", err)
	}
	life, leave := context.WithCancel(context.Background())
	m := &Member{node: node, store: store, config: config, view: newView(node), leave: leave}
	if err := m.view.read(ctx); err != nil {
		leave()
		return nil, errors.Join(fmt.Errorf("reading the registry of nodes: %w", err), node.Close(ctx))
	}
	m.group.Go(func() { m.view.follow(life) })
	return m, nil
}

// Node returns the member's node, on which elections stand.
func (m *Member) Node() *tenure.Node { return m.node }

// ID returns the node's id.
func (m *Member) ID() NodeID { return NodeID(m.node.ID()) }

// Nodes returns the nodes of the cluster as this member knows them, the dead
// among them, in the order in which they came. It asks no database. See
// [Registry] for what the database says.
func (m *Member) Nodes() []NodeInfo {
	members, _ := m.view.members()
	nodes := make([]NodeInfo, len(members))
	for i, member := range members {
		nodes[i] = newNodeInfo(member)
	}
	return nodes
}

// Close leaves the cluster at once: it waits for no work in flight but that
// under a term, as [tenure.Node.Close] does. See [Member.Shutdown] for leaving
// politely.
func (m *Member) Close(ctx context.Context) error {
	m.leave()
	err := m.node.Close(ctx)
	m.group.Wait()
	return err
}
