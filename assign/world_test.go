package assign_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/assign"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/postgres"
)

const patience = testkit.Patience

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

// world is an installation with a table of jobs, and the nodes of a cluster.
type world struct {
	*postgrestest.Installation
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return &world{postgrestest.New(t)}
}

// newJobs is a world whose table is ready, and printed if the test fails.
func newJobs(t testing.TB) *world {
	t.Helper()
	w := newWorld(t)
	w.Exec(jobs)
	w.setUp(w.config())
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.dump())
		}
	})
	return w
}

// store returns a separate backend, as another process would have.
func (w *world) store() *postgres.Backend { w.Helper(); return w.NewBackend() }

// config is the configuration of the tests: they depend on notifications, unless a
// test polls.
func (w *world) config() assign.Config {
	return assign.Config{
		Table:        pgx.Identifier{w.Schema, "jobs"},
		Columns:      assign.Columns{Priority: "priority"},
		Role:         tenure.NamedRole("assigner"), // the default's key is one lock for all tests of a server
		PollInterval: patience,
	}
}

func (w *world) setUp(config assign.Config) {
	w.Helper()
	sql, err := assign.Setup(w.Backend, config)
	if err != nil {
		w.Fatal(err)
	}
	w.Exec(sql)
}

// one reads one value.
func one[T any](w *world, sql string, args ...any) T {
	w.Helper()
	return postgrestest.Value[T](w.Installation, sql, args...)
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
	w.Exec(`INSERT INTO {schema}.jobs (capability) SELECT $2 FROM generate_series(1, $1)`, n, capability)
}

func (w *world) join(store cluster.Store, nodeConfig tenure.Config, config cluster.Config) *cluster.Member {
	w.Helper()
	return postgrestest.Join(w, store, nodeConfig, config)
}

// node is a member that can die.
type node struct {
	*cluster.Member
	kill func() // once others watch it
}

// worker creates a node that accepts jobs.
func (w *world) worker(name string, capabilities ...string) node {
	w.Helper()
	store := &postgrestest.Mortal{Backend: w.store()}
	member := w.join(store, tenure.Config{Name: name}, cluster.Config{Roles: []cluster.NodeRole{cluster.Worker}, Capabilities: capabilities})
	return node{member, func() {
		w.Helper()
		w.settle(member)
		store.Kill()
	}}
}

// settle waits until another node waits for the end of this one.
func (w *world) settle(member *cluster.Member) { w.Helper(); w.AwaitWatched(member.ID()) }

// scheduler creates a node that accepts no jobs.
func (w *world) scheduler(name string) *cluster.Member {
	w.Helper()
	return w.join(w.store(), tenure.Config{Name: name}, cluster.Config{Roles: []cluster.NodeRole{cluster.Scheduler}})
}

// assigner makes an assigner.
func (w *world) assigner(member *cluster.Member, config assign.Config) *assign.Assigner {
	w.Helper()
	assigner, err := assign.New(member, w.Pool, config)
	if err != nil {
		w.Fatal(err)
	}
	return assigner
}

// run runs an assigner until the test ends, or the returned function is called.
func (w *world) run(assigner *assign.Assigner) (stop func()) {
	w.Helper()
	return postgrestest.Run(w, assigner.Run)
}

// sees waits until a member sees others in a status.
func (w *world) sees(member *cluster.Member, status cluster.NodeStatus, others ...node) {
	w.Helper()
	w.Await("nodes that are "+string(status), func() bool {
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
	return w.count(`node_id = $1 AND state IN ('assigned', 'running')`, n.ID())
}

// begin makes a node begin all rows that are assigned to it, as a worker does.
func (w *world) begin(n node) {
	w.Helper()
	w.Exec(`UPDATE {schema}.jobs SET state = 'running' WHERE node_id = $1 AND state = 'assigned'`, n.ID())
}
