package postgrestest

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/postgres"
)

// Node opens a node on the installation's backend, which closes with the test.
func (i *Installation) Node(name string, config tenure.Config) *tenure.Node {
	i.Helper()
	config.Name = name
	return OpenNode(i, i.Backend, config)
}

// OpenNode opens a node that closes with the test. It logs to the test unless the
// configuration has a logger.
func OpenNode(t testing.TB, backend tenure.Backend, config tenure.Config) *tenure.Node {
	t.Helper()
	if config.Logger == nil {
		config.Logger = testkit.Logger(t)
	}
	node, err := tenure.Open(t.Context(), backend, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Close(t, node) })
	return node
}

// Close closes a node or a member, which may be closed already.
func Close(t testing.TB, node interface{ Close(context.Context) error }) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	if err := node.Close(ctx); err != nil {
		t.Error(err)
	}
}

// Join makes a member that leaves with the test. It logs to the test unless the
// configuration has a logger.
func Join(t testing.TB, store cluster.Store, nodeConfig tenure.Config, config cluster.Config) *cluster.Member {
	t.Helper()
	member, err := TryJoin(t, store, nodeConfig, config)
	if err != nil {
		t.Fatal(err)
	}
	return member
}

// TryJoin is Join that returns the error.
func TryJoin(t testing.TB, store cluster.Store, nodeConfig tenure.Config, config cluster.Config) (*cluster.Member, error) {
	t.Helper()
	if nodeConfig.Logger == nil {
		nodeConfig.Logger = testkit.Logger(t)
	}
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	member, err := cluster.Join(ctx, store, nodeConfig, config)
	if err == nil {
		t.Cleanup(func() { Close(t, member) })
	}
	return member, err
}

// Run runs a function until the test ends or stop is called, which returns when
// the function has. The test fails if the function returns an error.
func Run(t testing.TB, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// Campaign makes a node a candidate for roles until the test ends. It leads them
// without doing anything.
func Campaign(t testing.TB, node *tenure.Node, roles ...string) {
	t.Helper()
	for _, role := range roles {
		election, err := node.Election(tenure.NamedRole(role))
		if err != nil {
			t.Fatal(err)
		}
		if err := election.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// Mortal is a store whose node can die as if its process had been killed. Such a
// node cannot fence.
type Mortal struct {
	*postgres.Backend

	mu       sync.Mutex
	dead     bool             // guarded by mu
	sessions []tenure.Session // guarded by mu
}

// Open opens a session, unless the node is dead.
func (m *Mortal) Open(ctx context.Context, options tenure.SessionOptions) (tenure.Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return nil, tenure.ErrConnection
	}
	session, err := m.Backend.Open(ctx, options)
	if err == nil {
		m.sessions = append(m.sessions, session)
	}
	return session, err
}

// Kill cuts the node's connections for good.
func (m *Mortal) Kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
	for _, session := range m.sessions {
		session.Abort()
	}
}

// Patience is [testkit.Patience].
const Patience = testkit.Patience

// Logger is [testkit.Logger].
func Logger(t testing.TB) *slog.Logger { return testkit.Logger(t) }
