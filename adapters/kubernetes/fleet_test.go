package kubernetes_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/exactly-one/tenure"
	tenurekubernetes "github.com/exactly-one/tenure/adapters/kubernetes"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/postgres"
)

const role = "controller"

// The timing of the electors, and the time that their callbacks have to return after
// the server has ended a session: until then, another node could lead already.
var (
	config = tenurekubernetes.Config{RenewDeadline: 400 * time.Millisecond, RetryPeriod: 100 * time.Millisecond}
	settle = time.Second
)

// fleet is some nodes, each with an elector.
type fleet struct {
	*postgrestest.Installation
	candidates []*candidate

	leading atomic.Int64
	terms   atomic.Int64 // calls of OnStartedLeading
}

// candidate is one node of a fleet.
type candidate struct {
	fleet *fleet
	node  *tenure.Node
	lock  *tenurekubernetes.Lock
	leads atomic.Bool

	mu     sync.Mutex
	cancel context.CancelFunc // of the present run; guarded by mu
}

// newFleet returns a fleet whose nodes call elect again and again.
func newFleet(t *testing.T, nodes int, elect func(c *candidate, ctx context.Context) error) *fleet {
	t.Helper()
	f := &fleet{Installation: postgrestest.New(t)}
	f.Exec(`CREATE TABLE ` + f.table() + ` (term bigint NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp())`)
	for i := range nodes {
		f.candidates = append(f.candidates, f.candidate(i, elect))
	}
	return f
}

func (f *fleet) table() string { return pgx.Identifier{f.Schema, "writes"}.Sanitize() }

func (f *fleet) candidate(i int, elect func(c *candidate, ctx context.Context) error) *candidate {
	f.Helper()
	node := postgrestest.OpenNode(f, f.NewBackend(), tenure.Config{Name: fmt.Sprint("node-", i), Settle: settle})
	c := &candidate{fleet: f, node: node, lock: newLock(f, node)}
	postgrestest.Run(f, func(ctx context.Context) error {
		for ctx.Err() == nil {
			if err := elect(c, c.next(ctx)); err != nil {
				return err
			}
		}
		return nil
	})
	return c
}

// next returns the context of the next run.
func (c *candidate) next(ctx context.Context) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, c.cancel = context.WithCancel(ctx)
	return c.lock.Context(ctx)
}

func newLock(t testing.TB, node *tenure.Node) *tenurekubernetes.Lock {
	t.Helper()
	lock, err := tenurekubernetes.New(node, tenure.NamedRole(role), config)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

// elect runs a new elector of client-go until it stops.
func (c *candidate) elect(ctx context.Context) error {
	elector, err := leaderelection.NewLeaderElector(electorConfig(c.lock, c.lock.Lead(c.work)))
	if err != nil {
		return err
	}
	elector.Run(ctx)
	return nil
}

// stop ends the present run, which releases the role.
func (c *candidate) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel()
}

func electorConfig(lock *tenurekubernetes.Lock, started func(context.Context)) leaderelection.LeaderElectionConfig {
	return leaderelection.LeaderElectionConfig{
		Lock: lock, Name: role, ReleaseOnCancel: true,
		LeaseDuration: time.Second, RenewDeadline: config.RenewDeadline, RetryPeriod: config.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: started, OnStoppedLeading: func() {}},
	}
}

// work is what a leader does: it writes in a fenced transaction, and lasts until its
// context ends, and a moment longer.
func (c *candidate) work(ctx context.Context, term *tenure.Term) {
	f := c.fleet
	if others := f.leading.Add(1) - 1; others > 0 {
		f.Errorf("%s leads beside %d others", c.node.Name(), others)
	}
	defer f.leading.Add(-1)
	c.leads.Store(true)
	defer c.leads.Store(false)
	f.terms.Add(1)
	_ = postgres.InTx(ctx, f.Pool, term, func(tx pgx.Tx) error { // fails if the term ends at this moment
		_, err := tx.Exec(ctx, `INSERT INTO `+f.table()+` (term) VALUES ($1)`, term.Number())
		return err
	})
	<-ctx.Done()
	linger, cancel := context.WithTimeout(context.WithoutCancel(ctx), 50*time.Millisecond)
	defer cancel()
	<-linger.Done()
}

// leader waits until OnStartedLeading has been called more often than before, and
// returns the candidate that leads.
func (f *fleet) leader(before int64) *candidate {
	f.Helper()
	var leader *candidate
	f.Await("a leader", func() bool {
		for _, c := range f.candidates {
			if c.leads.Load() && f.terms.Load() > before {
				leader = c
				return true
			}
		}
		return false
	})
	return leader
}

// terminate ends the server sessions of the leader.
func (f *fleet) terminate() {
	f.Helper()
	status, err := f.Backend.Holders(f.Context(), tenure.NamedRole(role))
	if err != nil {
		f.Fatal(err)
	}
	for _, holder := range status {
		for _, session := range holder.Sessions {
			f.Exec(`SELECT pg_terminate_backend($1)`, session.PID)
		}
	}
}

// check compares the writes with the history of the role.
func (f *fleet) check() {
	f.Helper()
	terms, err := f.Backend.History(f.Context(), history.Query{Role: role})
	if err != nil {
		f.Fatal(err)
	}
	for i, term := range terms[1:] { // the last began first
		late := postgrestest.Value[int](f.Installation, `SELECT count(*)::int FROM `+f.table()+` WHERE term = $1 AND at > $2`, term.Term, terms[i].Began)
		if late > 0 {
			f.Errorf("term %d committed %d writes after term %d began", term.Term, late, terms[i].Term)
		}
	}
}
