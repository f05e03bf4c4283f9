//go:build linux

package agent_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent/internal/wire"
	"github.com/exactly-one/tenure/agent/server"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/tenuretest"
)

// halfReading is a database whose sessions return the first requests together with an
// error, as one that could not answer an offer does.
type halfReading struct {
	*tenuretest.Database
	failed atomic.Bool
	taken  chan struct{} // closed when requests were returned with an error
}

func (d *halfReading) Open(ctx context.Context, options tenure.SessionOptions) (tenure.Session, error) {
	inner, err := d.Database.Open(ctx, options)
	return halfReadingSession{inner, d}, err
}

type halfReadingSession struct {
	tenure.Session
	db *halfReading
}

func (s halfReadingSession) Requests() ([]tenure.Request, error) {
	requests, err := s.Session.Requests()
	if len(requests) > 0 && s.db.failed.CompareAndSwap(false, true) {
		close(s.db.taken)
		err = errBusy
	}
	return requests, err
}

// What a session returns together with an error counts as taken: no later call would
// return it, so the agent passes it on.
func TestRequestsReadWithAnErrorArePassedOn(t *testing.T) {
	t.Parallel()
	db := &halfReading{Database: tenuretest.NewDatabase(), taken: make(chan struct{})}
	node := dialRaw(t, startAgent(t, server.Config{Backend: db}))
	node.open(time.Minute)
	node.acquire("r")
	if err := db.Request(t.Context(), tenure.Request{Kind: tenure.RequestStepDown, Role: "r", By: "an operator"}); err != nil {
		t.Fatal(err)
	}
	testkit.Receive(t, db.taken, patience, "the agent does not read the request")
	node.acquire("another") // the agent serves this call after it has read the requests
	answer := node.call(wire.Call{Op: wire.OpRequests})
	if len(answer.Requests) != 1 || answer.Requests[0].By != "an operator" {
		t.Errorf("the leader gets the requests %+v, want that of the operator", answer.Requests)
	}
}
