package cluster_test

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// patience is how long a test waits for what must happen soon.
const patience = 20 * time.Second

// site is a database with a schema of its own, in which a test's nodes meet.
type site struct {
	t      testing.TB
	dsn    string
	schema string
}

func newSite(t testing.TB) site {
	t.Helper()
	server := pgtest.Shared(t)
	return site{t: t, dsn: server.DSN(), schema: server.Schema(t)}
}

// store returns a backend as a process of its own would have it.
func (s site) store() *postgres.Backend {
	s.t.Helper()
	db, err := postgres.New(s.dsn, postgres.Config{Schema: s.schema})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(db.Close)
	return db
}

// exec runs a statement.
func (s site) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := pgtest.Conn(s.t, s.dsn).Exec(s.t.Context(), sql, args...); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

// settle waits until another node waits for the end of each of these, as it does
// some time after the last one joined.
func (s site) settle(nodes ...node) {
	s.t.Helper()
	conn, deadline := pgtest.Conn(s.t, s.dsn), within(s.t)
	ids := make([]uuid.UUID, len(nodes))
	for i, n := range nodes {
		ids[i] = n.ID().UUID()
	}
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for {
		var watched int
		err := conn.QueryRow(deadline, `
SELECT count(*)
FROM `+s.table("nodes")+` n
WHERE n.id = ANY ($1) AND EXISTS (
	SELECT FROM pg_locks l JOIN pg_locks other USING (locktype, database, classid, objid, objsubid)
	WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.objid = n.incarnation::oid
		AND l.pid = n.pid AND l.granted AND NOT other.granted)`, ids).Scan(&watched)
		if err != nil {
			s.t.Fatalf("%d of %d nodes are watched: %v", watched, len(nodes), err)
		}
		if watched == len(nodes) {
			return
		}
		<-poll.C
	}
}

// table names one of the site's tables.
func (s site) table(name string) string { return s.schema + ".tenure_" + name }

// mortal is a store whose node can die as if its process had been killed.
type mortal struct {
	*postgres.Backend
	marked chan []uuid.UUID // receives what MarkDead first marked

	mu       sync.Mutex
	dead     bool
	sessions []tenure.Session
}

func (m *mortal) Open(ctx context.Context, opening tenure.SessionOptions) (tenure.Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return nil, tenure.ErrConnection
	}
	session, err := m.Backend.Open(ctx, opening)
	if err == nil {
		m.sessions = append(m.sessions, session)
	}
	return session, err
}

func (m *mortal) MarkDead(ctx context.Context, threshold time.Duration) ([]uuid.UUID, error) {
	marked, err := m.Backend.MarkDead(ctx, threshold)
	select {
	case m.marked <- marked:
	default:
	}
	return marked, err
}

// kill closes the node's connections without a word, for ever.
func (m *mortal) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
	for _, session := range m.sessions {
		session.Abort()
	}
}

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
	nodeConfig := tenure.Config{Name: name, Logger: logger(s.t)}
	for _, change := range changes {
		change(&nodeConfig)
	}
	store := &mortal{Backend: s.store(), marked: make(chan []uuid.UUID, 1)}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	member, err := cluster.Join(ctx, store, nodeConfig, config)
	if err != nil {
		return node{}, err
	}
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := member.Close(ctx); err != nil {
			s.t.Errorf("%s leaves: %v", name, err)
		}
	})
	return node{member, s.t, store}, nil
}

// brief makes a node's lease short.
func brief(config *tenure.Config) {
	config.Lease, config.CheckInterval = 2*time.Second, 500*time.Millisecond
}

// sees waits until the node sees another, or itself, as it should be.
func (n node) sees(id cluster.NodeID, what string, is func(info cluster.NodeInfo, there bool) bool) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	every := cluster.Filter{Statuses: []cluster.NodeStatus{cluster.Joining, cluster.Active, cluster.Draining, cluster.Dead}}
	for change := range n.Watch(ctx, every) {
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

// logger sends log lines to the test; those that come after its end are
// dropped.
func logger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(&logWriter{t: t}, nil))
}

type logWriter struct {
	mu sync.Mutex
	t  testing.TB
}

func (w *logWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.t.Context().Err() != nil {
		return io.Discard.Write(line)
	}
	w.t.Logf("%s", line)
	return len(line), nil
}

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
	select {
	case change, ok := <-changes:
		if !ok {
			t.Fatal("the channel is closed")
		}
		return change
	case <-time.After(patience):
		t.Fatal("no change came")
		return cluster.Change{}
	}
}
