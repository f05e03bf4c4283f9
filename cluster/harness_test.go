package cluster_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/postgres"
)

const patience = testkit.Patience

// site is the installation of a test's nodes.
type site struct {
	*postgrestest.Installation
	t      testing.TB
	dsn    string
	schema string
}

func newSite(t testing.TB) site {
	t.Helper()
	i := postgrestest.Unmigrated(t)
	return site{i, t, i.Server.DSN(), i.Schema}
}

// store returns a separate backend, as another process would have.
func (s site) store() *postgres.Backend { s.t.Helper(); return s.NewBackend() }

func (s site) exec(sql string, args ...any) { s.t.Helper(); s.Exec(sql, args...) }

// settle waits until another node waits for the end of each of these.
func (s site) settle(nodes ...node) {
	s.t.Helper()
	ids := make([]uuid.UUID, len(nodes))
	for i, n := range nodes {
		ids[i] = n.ID()
	}
	s.AwaitWatched(ids...)
}

// table names one of the site's tables.
func (s site) table(name string) string { return s.schema + ".tenure_" + name }

// mortal is a store whose node can die as if its process had been killed.
type mortal struct {
	*postgrestest.Mortal
	marked chan []uuid.UUID // receives what MarkDead first marked
	gate   atomic.Pointer[chan struct{}]
}

// hold makes the node's next session wait until the result is called.
func (m *mortal) hold() (release func()) {
	gate := make(chan struct{})
	m.gate.Store(&gate)
	return sync.OnceFunc(func() { close(gate) })
}

func (m *mortal) Open(ctx context.Context, options tenure.SessionOptions) (tenure.Session, error) {
	if gate := m.gate.Load(); gate != nil {
		select {
		case <-*gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return m.Mortal.Open(ctx, options)
}

func (m *mortal) MarkDead(ctx context.Context, threshold time.Duration) ([]uuid.UUID, error) {
	marked, err := m.Mortal.MarkDead(ctx, threshold)
	select {
	case m.marked <- marked:
	default:
	}
	return marked, err
}

func (m *mortal) kill() { m.Kill() }

// node is a member of a test.
type node struct {
	*cluster.Member
	t     testing.TB
	store *mortal
}

// join makes a member, which leaves with the test.
func (s site) join(name string, config cluster.Config, changes ...func(*tenure.Config)) node {
	s.t.Helper()
	n, err := s.tryJoin(name, config, changes...)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s site) tryJoin(name string, config cluster.Config, changes ...func(*tenure.Config)) (node, error) {
	s.t.Helper()
	nodeConfig := tenure.Config{Name: name}
	for _, change := range changes {
		change(&nodeConfig)
	}
	store := &mortal{Mortal: &postgrestest.Mortal{Backend: s.store()}, marked: make(chan []uuid.UUID, 1)}
	member, err := postgrestest.TryJoin(s.t, store, nodeConfig, config)
	return node{member, s.t, store}, err
}

// brief makes a node's intervals short, but not so short that a busy machine misses
// a reservation, which lasts for one CheckInterval, or the time limit of a statement,
// which is a sixth of the lease.
func brief(config *tenure.Config) {
	config.Lease, config.CheckInterval = 6*time.Second, 2*time.Second
}

// sees waits until the node sees another, or itself, as it should be.
func (n node) sees(id cluster.NodeID, what string, is func(info cluster.NodeInfo, there bool) bool) {
	n.t.Helper()
	n.seesWith(everyStatus, id, what, is)
}

// seesLoad is sees for what heartbeats change.
func (n node) seesLoad(id cluster.NodeID, what string, is func(info cluster.NodeInfo, there bool) bool) {
	n.t.Helper()
	filter := everyStatus
	filter.Load = true
	n.seesWith(filter, id, what, is)
}

func (n node) seesWith(filter cluster.Filter, id cluster.NodeID, what string, is func(info cluster.NodeInfo, there bool) bool) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	for change := range n.Watch(ctx, filter) {
		i := slices.IndexFunc(change.Nodes, func(info cluster.NodeInfo) bool { return info.ID == id })
		if i < 0 && is(cluster.NodeInfo{}, false) || i >= 0 && is(change.Nodes[i], true) {
			return
		}
	}
	n.t.Fatalf("%s does not see that %s is %s; it sees %+v", n.Node().Name(), id, what, n.Nodes())
}

// seesStatus waits until the node sees a node in a status.
func (n node) seesStatus(id cluster.NodeID, status cluster.NodeStatus) {
	n.t.Helper()
	n.sees(id, string(status), func(info cluster.NodeInfo, there bool) bool { return there && info.Status == status })
}

func logger(t testing.TB) *slog.Logger { return testkit.Logger(t) }

// within returns a context that ends when patience does.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// receive waits for a change.
func receive(t testing.TB, changes <-chan cluster.Change) cluster.Change {
	t.Helper()
	return testkit.Receive(t, changes, patience, "no change came")
}
