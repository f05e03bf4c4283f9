// Package leasetest contains the conformance suites for stores of leases and for
// backends of elections on any database. Packages lease and lease/store pass them on
// SQLite, PostgreSQL and MariaDB; run them for your own implementations. The tests wait
// for conditions with deadlines, never for a fixed time.
package leasetest

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/sessiontest"
	"github.com/exactly-one/tenure/internal/together"
	"github.com/exactly-one/tenure/lease/store"
)

// Store is the interface checked by RunStore; see [store.Store] for the contract.
type Store interface {
	Register(ctx context.Context, namespace string, candidate uuid.UUID) error
	Heartbeat(ctx context.Context, namespace string, candidate uuid.UUID) error
	Elect(ctx context.Context, namespace string, candidate uuid.UUID) (store.Lease, error)
	IsLeader(ctx context.Context, namespace string, candidate uuid.UUID) (bool, error)
	Candidates(ctx context.Context, namespace string) ([]uuid.UUID, error)
	Unregister(ctx context.Context, namespace string, candidate uuid.UUID) error
}

var _ Store = (*store.Store)(nil)

// RunStore runs the suite for stores. Its tests run in parallel, and newStore is called
// for each one. It must return a store with the given window on an empty database. The
// store must be safe for concurrent use, and its connection pool must allow several
// connections or queue for one.
func RunStore(t *testing.T, newStore func(t *testing.T, window time.Duration) Store) {
	run := func(t *testing.T, test storeTest) {
		test.run(&storeSuite{T: t, Store: newStore(t, test.window), window: test.window})
	}
	waiting := together.New(t)
	for _, test := range storeTests {
		if test.window == short { // it waits for the end of the window
			waiting.Run(test.name, func(t *testing.T) { run(t, test) })
		}
	}
	waiting.Wait()
	for _, test := range storeTests {
		if test.window != short {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				run(t, test)
			})
		}
	}
}

// RunBackend runs the suite for backends. Its tests run in parallel, and newBackend is
// called for each one. It must return a backend on which no roles or nodes of other tests
// are visible. [tenure.Backend] and [tenure.Session] describe the contract.
func RunBackend(t *testing.T, newBackend func(t *testing.T) tenure.Backend) {
	sessiontest.Run(t, newBackend)
}
