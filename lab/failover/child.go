package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/postgres"
)

// childOptions are the flags of a child.
type childOptions struct {
	dsn, name    string
	lease        time.Duration
	nodes, roles int
	member       bool // of a cluster
}

func runChild(kind string, args []string) error {
	var o childOptions
	flags := flag.NewFlagSet(kind, flag.ContinueOnError)
	flags.StringVar(&o.dsn, "dsn", "", "")
	flags.StringVar(&o.name, "name", "", "")
	flags.DurationVar(&o.lease, "lease", 10*time.Second, "")
	flags.IntVar(&o.nodes, "nodes", 1, "")
	flags.IntVar(&o.roles, "roles", 1, "")
	flags.BoolVar(&o.member, "member", false, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	commands := make(chan string)
	go func() {
		defer close(commands)
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			commands <- lines.Text()
		}
	}()
	switch kind {
	case "child-waiter":
		return runWaiter(o.dsn, o.roles, commands)
	case "child-resting":
		return runResting(o, commands)
	default:
		return runNode(o, commands)
	}
}

func runNode(o childOptions, commands <-chan string) error {
	ctx := context.Background()
	db, err := postgres.New(o.dsn, postgres.Config{})
	if err != nil {
		return err
	}
	defer db.Close()
	calls := &trace{}
	node, err := tenure.Open(ctx, tracingBackend{db, calls}, tenure.Config{Name: o.name, Lease: o.lease, Logger: errorLogger()})
	if err != nil {
		return err
	}
	first, err := campaign(ctx, node, o.roles, &counter{wanted: o.roles})
	if err != nil {
		return err
	}
	children.Send(children.Report{Kind: "ready"})
	go children.Watch(100*time.Millisecond, children.Leads(first.IsLeader))
	for command := range commands {
		if command == "trace" {
			if err := calls.send(); err != nil {
				return err
			}
			continue
		}
		if err := injectFault(ctx, db, first, command); err != nil {
			return err
		}
		children.Send(children.Report{Kind: "done"})
		if command == "close" {
			return nil
		}
	}
	return nil
}

// injectFault ends the term of an election as the command says, and reports when it begins.
func injectFault(ctx context.Context, db *postgres.Backend, e *tenure.Election, command string) error {
	var handOver tenure.Request
	if command == "handover" { // the target accepts before the fault begins
		var err error
		if handOver, err = offer(ctx, db, e.Node().ID(), e.Role().Name()); err != nil {
			return err
		}
	}
	children.Send(children.Report{Kind: "fault"})
	switch command {
	case "handover":
		return e.HandleRequest(ctx, handOver)
	case "stepdown":
		return e.StepDown(ctx)
	case "close":
		return e.Node().Close(ctx)
	}
	return nil
}

// offer returns the request to hand a role over to another node, which has accepted it:
// the leader still leads until then.
func offer(ctx context.Context, db *postgres.Backend, own uuid.UUID, role string) (tenure.Request, error) {
	all, err := db.Nodes(ctx)
	if err != nil {
		return tenure.Request{}, err
	}
	for _, other := range all {
		if other.ID == own {
			continue
		}
		request := tenure.Request{Kind: tenure.RequestHandOver, Offer: true, Role: role, Target: other.ID}
		if err := db.Request(ctx, request); err != nil {
			return tenure.Request{}, err
		}
		request.Offer = false
		return request, nil
	}
	return tenure.Request{}, errors.New("there is no other node")
}

// counter reports when the process holds all its roles.
type counter struct {
	mu           sync.Mutex
	held, wanted int
}

func (c *counter) event(event tenure.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch event.Kind {
	case tenure.EventAcquired:
		if c.held++; c.held == c.wanted {
			children.Send(children.Report{Kind: "acquired", At: event.At.UnixNano(), Term: event.Term.Number()})
		}
	case tenure.EventLost, tenure.EventReleased:
		if c.held--; c.held == 0 {
			children.Send(children.Report{Kind: "lost", At: event.At.UnixNano()})
		}
	}
}
