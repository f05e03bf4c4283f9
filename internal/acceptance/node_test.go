package acceptance_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/retry"
)

// role is the role for which the nodes of most tests campaign.
const role = "scheduler"

// cluster is an installation of Tenure and the nodes of a test.
type cluster struct {
	t      *testing.T
	dsn    string
	schema string
	config tenure.Config
	db     postgres.Config
	checks *checker
}

// newCluster makes an installation in a separate schema on the shared server.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	server := pgtest.Shared(t)
	return clusterOn(t, server.DSN(), server.Schema(t))
}

// clusterOn makes an installation on a server of the test.
func clusterOn(t *testing.T, dsn, schema string) *cluster {
	t.Helper()
	c := &cluster{t: t, dsn: dsn, schema: schema}
	c.config = tenure.Config{
		Lease:         lease,
		CheckInterval: checkInterval,
		FenceTimeout:  time.Second,
		LockTimeout:   patience,
		Retry:         retry.FixedInterval{Interval: 200 * time.Millisecond},
	}
	c.db = postgres.Config{Schema: schema}
	c.checks = newChecker(t)
	return c
}

// member is a candidate for the role, with the faults that a test can cause.
type member struct {
	*tenure.Node
	t        *testing.T
	election *tenure.Election
	backend  *postgres.Backend
	wire     *faultwire.Proxy // nil if the node is connected directly
}

// join opens a node that campaigns for the role. Its name is used for one node of a
// cluster at most.
func (c *cluster) join(name string) *member { return c.joinThrough(name, nil) }

// joinWired is join with a proxy between the node and the server.
func (c *cluster) joinWired(name, address string) *member {
	c.t.Helper()
	wire, err := faultwire.Start(address)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.joinThrough(name, wire)
}

func (c *cluster) joinThrough(name string, wire *faultwire.Proxy) *member {
	c.t.Helper()
	m := c.open(name, wire)
	election, err := m.Node.Election(tenure.NamedRole(role))
	if err != nil {
		c.t.Fatal(err)
	}
	m.election = election
	c.checks.add(m)
	if err := election.Start(context.Background()); err != nil {
		c.t.Fatal(err)
	}
	return m
}

// open opens a node without an election.
func (c *cluster) open(name string, wire *faultwire.Proxy) *member {
	c.t.Helper()
	m := &member{t: c.t, wire: wire}
	dsn := c.dsn
	if wire != nil {
		var err error
		if dsn, err = wire.DSN(dsn); err != nil {
			c.t.Fatal(err)
		}
	}
	var err error
	if m.backend, err = postgres.New(dsn, c.db); err != nil {
		c.t.Fatal(err)
	}
	config := c.config
	config.Name, config.Logger = name, cmp.Or(c.config.Logger, logTo(c.t))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	m.Node, err = tenure.Open(c.checks.steps.Of(ctx), m.backend, config)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		// To leave resets connections, and a reset is no end of trust that the protocol orders:
		// the next leader may begin before the node notices.
		c.checks.end()
		m.leave()
	})
	return m
}

// leave closes the node without regard to the terms it holds.
func (m *member) leave() {
	if m.wire != nil {
		if err := m.wire.Close(); err != nil {
			m.t.Error(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := m.Node.Close(ctx); err != nil && !errors.Is(err, tenure.ErrTermEnded) {
		m.t.Errorf("closing %s: %v", m.Name(), err)
	}
	m.backend.Close()
}

// leads waits until the node leads and returns the term.
func (m *member) leads() *tenure.Term {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	term, err := m.election.WaitForLeadership(ctx)
	if err != nil {
		m.t.Fatalf("%s does not lead: %v", m.Name(), err)
	}
	return term
}

// leadsWithin is leads with a bound of the protocol, counted from a moment. It
// returns when the term was seen.
func (m *member) leadsWithin(bound time.Duration, since time.Time) (*tenure.Term, time.Duration) {
	m.t.Helper()
	term := m.leads()
	took := time.Since(since)
	if took > bound+slack {
		m.t.Errorf("%s led after %v; the bound is %v", m.Name(), took, bound)
	}
	m.t.Logf("%s led after %v (bound %v)", m.Name(), took.Round(time.Millisecond), bound)
	return term, took
}

// session waits for the node's session connection on its wire.
func (m *member) session() *faultwire.Conn { return m.conn("session") }

// watch waits for the node's watch connection on its wire.
func (m *member) watch() *faultwire.Conn { return m.conn("watch") }

func (m *member) conn(purpose string) *faultwire.Conn {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := m.wire.AwaitNamed(ctx, "tenure "+m.Name()+" "+purpose)
	if err != nil {
		m.t.Fatal(err)
	}
	return conn
}

// ended waits until the term's context has ended.
func ended(t *testing.T, term *tenure.Term) {
	t.Helper()
	select {
	case <-term.Context().Done():
	case <-time.After(patience):
		t.Fatalf("term %d did not end", term.Number())
	}
}

// causeOfEnd waits until the term's context has ended and returns why.
func causeOfEnd(t *testing.T, term *tenure.Term) error {
	t.Helper()
	ended(t, term)
	return context.Cause(term.Context())
}

// someoneElse waits until any node leads in another term than this.
func (c *cluster) someoneElse(last int64, members ...*member) (*member, *tenure.Term) {
	c.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		for _, m := range members {
			if term := m.election.Term(); term != nil && term.Number() > last {
				return m, term
			}
		}
	}
	c.t.Fatalf("no node leads a term after %d", last)
	return nil, nil
}

// quoted is the name of an object of the schema.
func (c *cluster) quoted(table string) string {
	return pgx.Identifier{c.schema, postgres.DefaultPrefix + table}.Sanitize()
}

// logTo sends log lines to the test; those that come after its end are dropped.
func logTo(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(&logWriter{t: t}, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

type logWriter struct {
	mu sync.Mutex
	t  *testing.T
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
