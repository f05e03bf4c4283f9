package assign_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/assign"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// patience is how long a test waits for something that should happen.
const patience = 30 * time.Second

// jobs is the table of the tests, with the names that are the defaults.
const jobs = `
CREATE TABLE {schema}.jobs (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	state text NOT NULL DEFAULT 'pending',
	node_id uuid,
	capability text NOT NULL DEFAULT '',
	attempts integer NOT NULL DEFAULT 0,
	assignment bigint NOT NULL DEFAULT 0,
	priority integer
)`

// world is a schema with a table of jobs, and the nodes of a cluster.
type world struct {
	testing.TB
	server  *pgtest.Server
	schema  string
	pool    *pgxpool.Pool
	backend *postgres.Backend
}

func newWorld(t testing.TB) *world {
	t.Helper()
	server := pgtest.Shared(t)
	w := &world{TB: t, server: server, schema: server.Schema(t), pool: server.Pool(t)}
	w.backend = w.store()
	if err := w.backend.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// newJobs is a world whose table is ready.
func newJobs(t testing.TB) *world {
	t.Helper()
	w := newWorld(t)
	w.exec(jobs)
	w.setUp(w.config())
	return w
}

// store is a backend as a process of its own would have it.
func (w *world) store() *postgres.Backend {
	w.Helper()
	backend, err := postgres.New(w.server.DSN(), postgres.Config{Schema: w.schema})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(backend.Close)
	return backend
}

// config is that of the tests: news has to do, unless a test polls.
func (w *world) config() assign.Config {
	return assign.Config{
		Table:        pgx.Identifier{w.schema, "jobs"},
		Columns:      assign.Columns{Priority: "priority"},
		Role:         tenure.NamedRole("assigner"), // the default's key is one lock for all tests of a server
		PollInterval: patience,
	}
}

func (w *world) setUp(config assign.Config) {
	w.Helper()
	sql, err := assign.Setup(w.backend, config)
	if err != nil {
		w.Fatal(err)
	}
	w.exec(sql)
}

func (w *world) exec(sql string, args ...any) {
	w.Helper()
	if _, err := w.pool.Exec(w.Context(), w.backend.SQL(sql), args...); err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
}

// one reads one value.
func one[T any](w *world, sql string, args ...any) T {
	w.Helper()
	rows, err := w.pool.Query(w.Context(), w.backend.SQL(sql), args...)
	if err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
	return value
}

// await waits for a condition on the database.
func (w *world) await(what string, condition func() bool) {
	w.Helper()
	await(w, what, condition)
}

func await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !condition(); <-tick.C {
		if time.Now().After(deadline) {
			if w, ok := t.(*world); ok {
				t.Log(w.dump())
			}
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// dump describes the table.
func (w *world) dump() string {
	return one[string](w, `
		SELECT coalesce(string_agg(format('%s %s at %s, needs %L, attempts %s, assignment %s', n, state, node_id, capability, attempts, assignment), E'\n'), 'no rows')
		FROM (
			SELECT state, node_id, capability, attempts, assignment, count(*) AS n
			FROM {schema}.jobs GROUP BY 1, 2, 3, 4, 5 ORDER BY 6 DESC LIMIT 20
		) jobs`)
}

// count counts jobs.
func (w *world) count(condition string, args ...any) int {
	w.Helper()
	return one[int](w, `SELECT count(*) FROM {schema}.jobs WHERE `+condition, args...)
}

// add adds jobs.
func (w *world) add(n int, capability string) {
	w.Helper()
	w.exec(`INSERT INTO {schema}.jobs (capability) SELECT $2 FROM generate_series(1, $1)`, n, capability)
}

// mortal is a store whose node can die as if its process had been killed. It
// cannot lead.
type mortal struct {
	*postgres.Backend

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

// kill closes the node's connections without a word, for ever.
func (m *mortal) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
	for _, session := range m.sessions {
		session.Abort()
	}
}

func (w *world) join(store cluster.Store, nodeConfig tenure.Config, config cluster.Config) *cluster.Member {
	w.Helper()
	nodeConfig.Logger = slog.New(slog.NewTextHandler(w.Output(), nil))
	member, err := cluster.Join(w.Context(), store, nodeConfig, config)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := member.Close(ctx); err != nil {
			w.Error(err)
		}
	})
	return member
}

// node is a member that can die.
type node struct {
	*cluster.Member
	kill func() // once others watch it
}

// worker makes a node that is given jobs.
func (w *world) worker(name string, capabilities ...string) node {
	w.Helper()
	store := &mortal{Backend: w.store()}
	member := w.join(store, tenure.Config{Name: name}, cluster.Config{Roles: []cluster.NodeRole{cluster.Worker}, Capabilities: capabilities})
	return node{member, func() {
		w.Helper()
		w.settle(member)
		store.kill()
	}}
}

// settle waits until another node waits for the end of this one, as it does some
// time after it has joined.
func (w *world) settle(member *cluster.Member) {
	w.Helper()
	w.await("somebody who watches "+member.Node().Name(), func() bool {
		return one[bool](w, `
			SELECT EXISTS (
				SELECT
				FROM {nodes} n
				JOIN pg_locks held ON held.pid = n.pid AND held.objid = n.incarnation::oid
				JOIN pg_locks other USING (locktype, database, classid, objid, objsubid)
				WHERE n.id = $1 AND held.locktype = 'advisory' AND held.objsubid = 2 AND held.granted AND NOT other.granted
			)`, member.ID().UUID())
	})
}

// scheduler makes a node that is given no jobs.
func (w *world) scheduler(name string) *cluster.Member {
	w.Helper()
	return w.join(w.store(), tenure.Config{Name: name}, cluster.Config{Roles: []cluster.NodeRole{cluster.Scheduler}})
}

// assigner makes an assigner.
func (w *world) assigner(member *cluster.Member, config assign.Config) *assign.Assigner {
	w.Helper()
	assigner, err := assign.New(member, w.pool, config)
	if err != nil {
		w.Fatal(err)
	}
	return assigner
}

// run runs an assigner until the test ends, or the returned function is called.
func (w *world) run(assigner *assign.Assigner) (stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() { done <- assigner.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.Error(err)
		}
	})
	w.Cleanup(stop)
	return stop
}

// sees waits until a member sees others in a status.
func (w *world) sees(member *cluster.Member, status cluster.NodeStatus, others ...node) {
	w.Helper()
	w.await("nodes that are "+string(status), func() bool {
		nodes := member.Nodes()
		for _, other := range others {
			if !slices.ContainsFunc(nodes, func(n cluster.NodeInfo) bool { return n.ID == other.ID() && n.Status == status }) {
				return false
			}
		}
		return true
	})
}

// has counts the unfinished jobs of a node.
func (w *world) has(n node) int {
	w.Helper()
	return w.count(`node_id = $1 AND state IN ('assigned', 'running')`, n.ID().UUID())
}

// begin has a node begin all that it was given, as a worker does.
func (w *world) begin(n node) {
	w.Helper()
	w.exec(`UPDATE {schema}.jobs SET state = 'running' WHERE node_id = $1 AND state = 'assigned'`, n.ID().UUID())
}
