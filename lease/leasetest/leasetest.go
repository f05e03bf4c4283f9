// Package leasetest checks that a store of leases, or a backend of elections,
// keeps its contract, whatever database stands behind it. The package lease
// passes it on SQLite, PostgreSQL and MariaDB; run it for implementations of your
// own. Its tests wait for conditions, with deadlines, and never for time alone to
// pass.
package leasetest

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/sessiontest"
	"github.com/exactly-one/tenure/lease/store"
)

// Store is what RunStore checks; see [store.Store] for what the methods promise.
type Store interface {
	Register(ctx context.Context, namespace string, candidate uuid.UUID) error
	Heartbeat(ctx context.Context, namespace string, candidate uuid.UUID) error
	Elect(ctx context.Context, namespace string, candidate uuid.UUID) (store.Lease, error)
	IsLeader(ctx context.Context, namespace string, candidate uuid.UUID) (bool, error)
	Candidates(ctx context.Context, namespace string) ([]uuid.UUID, error)
	Unregister(ctx context.Context, namespace string, candidate uuid.UUID) error
}

var _ Store = (*store.Store)(nil)

// RunStore runs the suite for stores, each test in parallel with the others on a
// store of its own: one with this window and in an empty database. The store must
// be safe for concurrent use, and a connection pool behind it must allow several
// connections, or queue for one.
func RunStore(t *testing.T, newStore func(t *testing.T, window time.Duration) Store) {
	for _, test := range storeTests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(&storeSuite{T: t, Store: newStore(t, test.window), window: test.window})
		})
	}
}

// RunBackend runs the suite for backends, each test in parallel with the others
// on a backend of its own: one that no other test's roles or nodes can be seen
// in. What a backend must do is said at [tenure.Backend] and [tenure.Session].
func RunBackend(t *testing.T, newBackend func(t *testing.T) tenure.Backend) {
	sessiontest.Run(t, newBackend)
}
