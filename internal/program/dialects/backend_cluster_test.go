package dialects

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/steplog"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/lease"
	"github.com/exactly-one/tenure/retry"
)

// backendRole is the role of most tests.
const backendRole = "scheduler"

// slack is the allowance for a busy machine. It is shorter than the lease of most tests,
// so that a test detects a delay of a second lease.
const slack = 4 * time.Second

// cluster is an installation on one database with the nodes of a test. Each node has its
// own pool of connections.
type cluster struct {
	t      testing.TB
	kind   kind
	source string
	config tenure.Config
	lease  lease.Config
	logged *failures
	steps  *steplog.History
	// mounted is a file that a child mounts at the path of the source; see childMounts.
	mounted string
}

// newCluster returns an installation on a new database.
func newCluster(t testing.TB, k kind) *cluster {
	t.Helper()
	return clusterOn(t, k, k.source(t))
}

// clusterOn returns an installation on an empty database.
func clusterOn(t testing.TB, k kind, source string) *cluster {
	t.Helper()
	logged := &failures{}
	return &cluster{t: t, kind: k, source: source, logged: logged, steps: steplog.New(t), config: tenure.Config{
		Lease:         5 * time.Second,
		CheckInterval: time.Second,
		LockTimeout:   patience,
		Retry:         retry.FixedInterval{Interval: 200 * time.Millisecond},
		Logger:        slog.New(logged),
	}}
}

// member is a node of a cluster.
type member struct {
	*tenure.Node
	t       testing.TB
	db      *sql.DB
	backend *lease.Backend
}

// join opens a node, which is closed when the test ends.
func (c *cluster) join(name string) *member {
	c.t.Helper()
	return c.joinOn(name, c.kind.connect(c.t, c.source))
}

// joinOn is join with a pool of connections.
func (c *cluster) joinOn(name string, db *sql.DB) *member {
	c.t.Helper()
	m := &member{t: c.t, db: db, backend: newBackend(c.t, db, c.kind.dialect, c.lease)}
	config := c.config
	config.Name = name
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if config.Clock == nil { // the times of steps are those of one clock
		ctx = c.steps.Of(ctx)
	}
	var err error
	if m.Node, err = tenure.Open(ctx, m.backend, config); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(m.leave)
	return m
}

// leave closes the node, even if it is closed already or has lost its session.
func (m *member) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := m.Close(ctx); err != nil && !errors.Is(err, tenure.ErrTermEnded) {
		m.t.Errorf("closing %s: %v", m.Name(), err)
	}
}

// election returns an election of the node that is not started.
func (m *member) election(role string) *tenure.Election {
	m.t.Helper()
	election, err := m.Election(tenure.NamedRole(role))
	if err != nil {
		m.t.Fatal(err)
	}
	return election
}

// campaign starts the node's election for a role.
func (m *member) campaign(role string) *tenure.Election {
	m.t.Helper()
	election := m.election(role)
	if err := election.Start(context.Background()); err != nil {
		m.t.Fatal(err)
	}
	return election
}

// leads waits until an election has a term.
func leads(t testing.TB, election *tenure.Election) *tenure.Term {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	term, err := election.WaitForLeadership(ctx)
	if err != nil {
		t.Fatalf("%s does not lead: %v", election.Node().Name(), err)
	}
	return term
}

// leaderOf waits until one of the elections has a term with a number above after.
func leaderOf(t testing.TB, after int64, elections ...*tenure.Election) *tenure.Term {
	t.Helper()
	var term *tenure.Term
	testkit.Await(t, "a node leads", func() bool {
		for _, e := range elections {
			if found := e.Term(); found != nil && found.Number() > after {
				term = found
			}
		}
		return term != nil
	})
	return term
}

// ended waits until a term has ended and returns the cause.
func ended(t testing.TB, term *tenure.Term) error {
	t.Helper()
	select {
	case <-term.Context().Done():
		return context.Cause(term.Context())
	case <-time.After(patience):
		t.Fatalf("term %d is still valid after %v", term.Number(), patience)
		return nil
	}
}

// lastValid waits until a term is no longer valid, or ctx ends, and returns the time
// before the last check that found it valid. It does not depend on how soon a busy
// machine cancels the term's context.
func lastValid(ctx context.Context, term *tenure.Term) time.Time {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var last time.Time
	for before := time.Now(); term.Valid() && ctx.Err() == nil; before = time.Now() {
		last = before
		<-tick.C
	}
	return last
}

// endsInTime checks that a term is valid for at most a lease after its node lost the
// database. It returns why the term ended.
func (c *cluster) endsInTime(term *tenure.Term, lost time.Time) error {
	c.t.Helper()
	if after := lastValid(soon(c.t), term).Sub(lost); after > c.config.Lease {
		c.t.Errorf("the term was valid %v after its node lost the database, with a lease of %v", after, c.config.Lease)
	}
	return ended(c.t, term)
}

// soon returns a context for one operation of a test.
func soon(t testing.TB) context.Context { t.Helper(); return limited(t, patience) }

// limited returns a context with a time limit.
func limited(t testing.TB, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

// onKinds runs a test on each kind of database. The short tests run on SQLite; the suites of
// conformance run on PostgreSQL, too.
func onKinds(t *testing.T, kinds []kind, test func(t *testing.T, k kind)) {
	t.Helper()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			if k.dialect != lease.SQLite {
				pgtest.Long(t)
			}
			t.Parallel()
			test(t, k)
		})
	}
}
