package roles

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/tenuretest"
)

// inMemory is as much of a backend as a step-down needs.
type inMemory struct {
	connect.Backend
	database *tenuretest.Database
}

func (m inMemory) Leaders(ctx context.Context, roles ...string) ([]tenure.Leader, error) {
	return m.database.Leaders(ctx, roles...)
}

func (m inMemory) Request(ctx context.Context, request tenure.Request) error {
	return m.database.Request(ctx, request)
}

// TestStepDownSparesNextTerm: a step-down ends the term that the command has seen. If another
// node leads when the request is made, its term does not end.
func TestStepDownSparesNextTerm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, stepDownLate)
}

func stepDownLate(t *testing.T) {
	backend := inMemory{database: tenuretest.NewDatabase()}
	start := func(name string) (*tenure.Node, *tenure.Election) {
		t.Helper()
		node, err := tenure.Open(t.Context(), backend.database, tenure.Config{Name: name, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		election, err := node.Election(tenure.NamedRole("billing"))
		if err != nil {
			t.Fatal(err)
		}
		go func() { // ends with the node
			_ = election.Run(context.Background(), func(ctx context.Context, term *tenure.Term) error {
				select {
				case <-ctx.Done():
				case <-term.Stopping():
				}
				return nil
			})
		}()
		synctest.Wait()
		return node, election
	}
	end := func(node *tenure.Node) {
		t.Helper()
		if err := node.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	one, _ := start("one")
	before, err := lookUp(t.Context(), backend, "billing")
	if err != nil || before == nil || before.NodeID != one.ID() {
		t.Fatalf("at first %+v leads, %v", before, err)
	}
	two, election := start("two")
	defer end(two)
	end(one)
	synctest.Wait()
	if election.Term() == nil {
		t.Fatal("the second node does not lead")
	}
	term := election.Term()
	c := &stepDownCommand{out: &console.Output{Writer: io.Discard}, timeout: flagvalue.Duration{Value: time.Second}}
	request := tenure.Request{Kind: tenure.RequestStepDown, Role: "billing", By: "the test"}
	ctx, cancel := context.WithTimeout(t.Context(), c.timeout.Value)
	defer cancel()
	if err := c.send(ctx, backend, request, before); err != nil {
		t.Error(err)
	}
	synctest.Wait()
	select {
	case <-term.Stopping():
		t.Errorf("the term of the second node ends: %v", context.Cause(term.Context()))
	default:
	}
}
