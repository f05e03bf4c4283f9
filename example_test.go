package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/tenuretest"
)

// openExample opens a node on a database in memory. A program opens it on a
// postgres.Backend or a lease.Backend.
func openExample(db tenure.Backend, name string) *tenure.Node {
	node, err := tenure.Open(context.Background(), db, tenure.Config{
		Name: name, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	return node
}

// candidate returns the node's election for a role.
func candidate(node *tenure.Node, role string) *tenure.Election {
	election, err := node.Election(tenure.NamedRole(role))
	if err != nil {
		log.Fatal(err)
	}
	return election
}

// A process campaigns for a role and leads it until its context ends. Then it gives
// up the role, and Run returns.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// In a program: db, err := postgres.New(dsn, postgres.Config{})
	db := tenuretest.NewDatabase()
	node, err := tenure.Open(ctx, db, tenure.Config{Name: "api-1", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close(context.Background())
	election, err := node.Election(tenure.NamedRole("billing"))
	if err != nil {
		log.Fatal(err)
	}
	err = election.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
		fmt.Println("leading", term.Role(), "as", node.Name())
		cancel() // a signal, in a program
		<-ctx.Done()
		fmt.Println("shutting down:", errors.Is(context.Cause(ctx), tenure.ErrStopping))
		return nil
	})
	fmt.Println("error:", err)
	// Output:
	// leading billing as api-1
	// shutting down: true
	// error: <nil>
}

// The standby takes over when the leader steps down.
func ExampleElection_StepDown() {
	ctx := context.Background()
	db := tenuretest.NewDatabase()
	first, second := openExample(db, "api-1"), openExample(db, "api-2")
	defer first.Close(ctx)
	defer second.Close(ctx)
	leader, standby := candidate(first, "billing"), candidate(second, "billing")

	if err := leader.Start(ctx); err != nil {
		log.Fatal(err)
	}
	old, err := leader.WaitForLeadership(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := standby.Start(ctx); err != nil {
		log.Fatal(err)
	}
	if err := leader.StepDown(ctx); err != nil {
		log.Fatal(err)
	}
	next, err := standby.WaitForLeadership(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the old term is valid:", old.Valid())
	fmt.Println("the number grew:", next.Number() > old.Number())
	// Output:
	// the old term is valid: false
	// the number grew: true
}

// Campaign leads one term without a function to call. The caller works under the
// term's context and then resigns.
func ExampleElection_Campaign() {
	ctx := context.Background()
	node := openExample(tenuretest.NewDatabase(), "importer")
	defer node.Close(ctx)
	election := candidate(node, "nightly-import")

	term, err := election.Campaign(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("leading:", election.IsLeader())
	// Work here, under term.Context().
	if err := term.Resign(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("leading:", election.IsLeader())
	// The node campaigns for this role no more.
	if err := election.Forget(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// leading: true
	// leading: false
}

// Work that uses Stopping finishes what it has begun: its context stays valid for up
// to StopTimeout after the term was asked to end.
func ExampleTerm_Stopping() {
	ctx := context.Background()
	node := openExample(tenuretest.NewDatabase(), "worker-1")
	defer node.Close(ctx)
	election := candidate(node, "mailer")

	err := election.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
		stopping := term.Stopping()
		go func() { _ = election.Shutdown(context.Background()) }()
		<-stopping
		fmt.Println("finishing the batch; still valid:", term.Valid() && ctx.Err() == nil)
		return nil
	})
	fmt.Println("error:", err)
	// Output:
	// finishing the batch; still valid: true
	// error: <nil>
}

// Start campaigns in the background; callbacks report terms. They run on a
// goroutine of the node, in order.
func ExampleElection_OnAcquired() {
	ctx := context.Background()
	node := openExample(tenuretest.NewDatabase(), "api-1")
	election := candidate(node, "billing")
	election.OnAcquired(func(term *tenure.Term) { fmt.Println("acquired", term.Role()) })
	election.OnReleased(func(term *tenure.Term) { fmt.Println("released", term.Role()) })
	election.OnStopped(func() { fmt.Println("stopped") })

	if err := election.Start(ctx); err != nil {
		log.Fatal(err)
	}
	if _, err := election.WaitForLeadership(ctx); err != nil {
		log.Fatal(err)
	}
	// Close waits until the callbacks have returned.
	if err := node.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// acquired billing
	// released billing
	// stopped
}

// A request handler registers its work with the term. The role is not released
// before the guard is.
func ExampleElection_Guard() {
	ctx := context.Background()
	node := openExample(tenuretest.NewDatabase(), "api-1")
	defer node.Close(ctx)
	election := candidate(node, "billing")
	handle := func() error {
		guard, err := election.Guard()
		if err != nil {
			return err // answer that another node leads
		}
		defer guard.Done()
		fmt.Println("handling a request; valid:", guard.Valid())
		return nil
	}
	fmt.Println("not the leader:", errors.Is(handle(), tenure.ErrNotLeader))

	term, err := election.Campaign(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := handle(); err != nil {
		log.Fatal(err)
	}
	if err := term.Resign(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// not the leader: true
	// handling a request; valid: true
}

// A program that is no candidate follows who leads.
func ExampleObserve() {
	ctx, cancel := context.WithCancel(context.Background())
	db := tenuretest.NewDatabase()
	node := openExample(db, "api-1")
	defer node.Close(context.Background())
	term, err := candidate(node, "billing").Campaign(ctx)
	if err != nil {
		log.Fatal(err)
	}

	changes := tenure.Observe(ctx, db, tenure.Config{Logger: slog.New(slog.DiscardHandler)}, tenure.NamedRole("billing"))
	first := <-changes
	fmt.Println(first.Role, "is led by", first.Leader.NodeName)
	if err := term.Resign(context.Background()); err != nil {
		log.Fatal(err)
	}
	next := <-changes
	fmt.Println(next.Role, "has a leader:", next.Leader != nil)
	cancel()
	for range changes { // closed when everything that Observe started has ended
	}
	// Output:
	// billing is led by api-1
	// billing has a leader: false
}
