package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/pgserver"
)

// scenario is one kind of fault, many times over.
type scenario struct {
	name  string
	slow  bool                                                           // takes a lease each time
	bare  func(ctx context.Context, b *bench, w *waiters) (limit, error) // the machine's limit, or nil
	fault func(ctx context.Context, b *bench, leader *child) (outcome, error)
	roles func(b *bench) int
	apart bool // the first leader runs in a network namespace
	bound string
}

// outcome is what a fault led to.
type outcome struct {
	took      time.Duration
	begun, at time.Time // of the vacancy, and of the next term
	next      *child    // the successor
	leader    string    // that led before
	note      string
}

var scenarios = []scenario{
	{name: "sigkill", bare: bareKill, fault: killLeader, bound: "ratio <= 3.25, begin <= 2.25, p99 <= 10"},
	{name: "step-down", bare: bareRelease, fault: endLeadershipBy("stepdown"), bound: "ratio <= 6, begin <= 3, p99 <= 10"},
	{name: "hand-over", bare: bareRelease, fault: endLeadershipBy("handover"), bound: "ratio <= 6, begin <= 3, p99 <= 10"},
	{name: "shutdown", bare: bareRelease, fault: endLeadershipBy("close"), bound: "ratio <= 6, begin <= 3, p99 <= 10"},
	{name: "terminate-backend", bare: bareKill, fault: terminate, bound: "as sigkill"},
	{name: "sigkill-many-roles", bare: bareKill, fault: killLeader, roles: func(b *bench) int { return b.roles }, bound: "<= 15 for 1,000 roles, 60 for 10,000"},
	{name: "sigstop", slow: true, fault: stopLeader, bound: "lease + 100"},
	{name: "network-cut", slow: true, fault: cutNetwork, apart: true, bound: "lease + 100"},
	{name: "restart-fast", slow: true, fault: restart(pgserver.Fast), bound: "same node 2500, else lease + 2500"},
	{name: "restart-immediate", slow: true, fault: restart(pgserver.Immediate), bound: "same node 2500, else lease + 2500"},
	{name: "backend-sigkill", slow: true, fault: crashServer, bound: "same node 2500, else lease + 2500"},
}

func scenarioNames() []string {
	var names []string
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	return append(names, costAtRest, costMemory)
}

const nodes = 3

// settling is how long a round waits for the nodes to close their ring.
const settling = 500 * time.Millisecond

func (s scenario) run(ctx context.Context, b *bench) (results, error) {
	result := results{scenario: s, lease: b.lease, slow: b.slow}
	if s.apart && b.network == nil {
		result.unmeasured = b.noNetwork
		return result, nil
	}
	rounds := b.rounds
	if s.slow {
		rounds = b.slowRounds
	}
	var waiting *waiters
	if s.bare != nil {
		waiting = &waiters{roles: 1}
		if s.roles != nil {
			waiting.roles = s.roles(b)
		}
	}
	for i := range rounds {
		one, err := s.round(ctx, b, waiting)
		if err != nil {
			return result, fmt.Errorf("round %d: %w", i+1, err)
		}
		result.rounds = append(result.rounds, one)
		if b.verbose {
			fmt.Printf("  %s round %d: %v %s\n", s.name, i+1, one.took, one.note)
		}
	}
	result.overlap = b.overlap()
	return result, nil
}

// round makes the fault once, after the bare waiter's.
func (s scenario) round(ctx context.Context, b *bench, waiting *waiters) (round, error) {
	var one round
	if err := s.gather(ctx, b); err != nil {
		return one, err
	}
	leader := b.leader()
	if leader == nil {
		return one, errors.New("no node leads")
	}
	if s.bare != nil {
		took, err := s.bare(ctx, b, waiting)
		if err != nil {
			return one, fmt.Errorf("bare waiter: %w", err)
		}
		one.bare = &took
	}
	before := b.observe()
	var err error
	if one.outcome, err = s.fault(ctx, b, leader); err != nil {
		return one, err
	}
	one.leader = leader.Name
	after := b.observe()
	before.addTo(&one.facts, after, one.at.Sub(one.begun))
	calls, err := one.next.calls(ctx)
	one.facts.addCalls(children.Interval{From: one.begun, To: one.at}, calls)
	return one, err
}

// gather brings the number of nodes up, with one leader apart if the scenario asks,
// and lets the ring close.
func (s scenario) gather(ctx context.Context, b *bench) error {
	args := []string{"-lease", b.lease.String()}
	if s.roles != nil {
		args = append(args, "-roles", fmt.Sprint(s.roles(b)))
	}
	if s.apart {
		b.killAll()
		c, err := b.spawn(ctx, b.network.Within(0), "child-node", append(args, "-dsn", b.dsnAcross())...)
		if err != nil {
			return err
		}
		if _, err := c.Await(ctx, "lead", time.Time{}); err != nil {
			return err
		}
	}
	if len(b.nodes()) == 0 {
		if err := b.vacate(ctx); err != nil {
			return err
		}
	}
	wanted := nodes
	if s.roles != nil {
		wanted = 2 // several successors would share the roles
	}
	for len(b.nodes()) < wanted {
		if _, err := b.spawn(ctx, nil, "child-node", append(args, "-dsn", b.server.DSN())...); err != nil {
			return err
		}
	}
	if err := children.Until(ctx, patience, 10*time.Millisecond, func() error {
		if b.leader() == nil {
			return errors.New("no node leads")
		}
		return nil
	}); err != nil {
		return err
	}
	time.Sleep(settling)
	return ctx.Err()
}

// vacate waits until no session of an earlier scenario is left.
func (b *bench) vacate(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, b.server.DSN())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return children.Until(ctx, patience, 50*time.Millisecond, func() error {
		var left int
		// Other systems have databases of theirs.
		const locks = "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE l.locktype = 'advisory' AND d.datname = current_database()"
		err := conn.QueryRow(ctx, locks).Scan(&left)
		if err == nil && left > 0 {
			err = fmt.Errorf("%d locks of the scenario before are left", left)
		}
		return err
	})
}

func (b *bench) nodes() []*child {
	var all []*child
	for _, c := range b.children {
		if c.kind == "child-node" {
			all = append(all, c)
		}
	}
	return all
}

func (b *bench) leader() *child {
	for _, c := range b.nodes() {
		if c.Leading() {
			return c
		}
	}
	return nil
}

// successor waits until some child of a kind has taken over since a moment, and
// returns it with the time it gives itself.
func (b *bench) successor(ctx context.Context, kind string, since time.Time) (*child, time.Time, error) {
	var next *child
	var at time.Time
	err := children.Until(ctx, patience, time.Millisecond, func() error {
		for _, c := range b.children {
			if c.kind != kind {
				continue
			}
			if r, found := c.Find("acquired", since); found {
				next, at = c, r.Time()
				return nil
			}
		}
		return errors.New("no child took over")
	})
	return next, at, err
}
