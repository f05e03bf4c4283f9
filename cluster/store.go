package cluster

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// Store is a backend with a registry of nodes, such as *postgres.Backend. Its
// methods do not use a node's session.
//
// If its sessions report every change of the registry, apart from loads and heartbeats,
// through SessionOptions.NodesChanged or Wait, a Store also has the method
//
//	ReportsNodeChanges() bool
//
// If it returns true, members refresh the registry after such a report, and read all of
// it about once in twelve check intervals in case a report is lost. Otherwise they
// read it every check interval.
type Store interface {
	tenure.Backend

	// Members returns all nodes in the registry, including dead ones, oldest
	// session first.
	Members(ctx context.Context) ([]tenure.Member, error)
	// MarkDead marks nodes dead after a silence longer than the threshold and their own
	// lease, and returns their ids.
	MarkDead(ctx context.Context, threshold time.Duration) ([]uuid.UUID, error)
	// Forget removes a dead node. If there is no dead node with this id, the
	// error matches tenure.ErrUnknownNode.
	Forget(ctx context.Context, node uuid.UUID) error
	// ForgetDead removes dead nodes with a last heartbeat older than olderThan, and
	// returns their ids.
	ForgetDead(ctx context.Context, olderThan time.Duration) ([]uuid.UUID, error)
}
