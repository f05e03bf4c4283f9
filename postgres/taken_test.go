package postgres

import (
	"context"
	"errors"
	"testing"

	"github.com/exactly-one/tenure"
)

// Requests for a node outlive a session that has not taken them: a caller that records
// one, and does not wait, learns nothing of the session.
func TestRequestsForNodeOutliveSession(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := open(t, b)
	open(t, b)
	request := func(kind tenure.RequestKind, by string) {
		t.Helper()
		if err := b.Request(context.Background(), tenure.Request{Kind: kind, Node: p.id, Force: true, By: by}); err != nil {
			t.Fatal(err)
		}
	}
	reopen := func() {
		t.Helper()
		p.Abort()
		p = open(t, b, func(o *peerOptions) { o.id, o.previous = p.id, p.Incarnation() })
	}
	take := func(want string) {
		t.Helper()
		requests, err := p.Requests()
		got := ""
		for _, r := range requests {
			got += string(r.Kind) + " by " + r.By + ";"
		}
		if err != nil || got != want {
			t.Fatalf("the node takes %q, %v; want %q", got, err, want)
		}
	}
	request(tenure.RequestDrain, "ann")
	reopen()
	take("drain by ann;")
	reopen()
	take("")

	// The session dies after it has read the request, before it has removed it.
	request(tenure.RequestUndrain, "bob")
	request(tenure.RequestDrain, "cem")
	trusted := p.trusted
	p.opening.MaySend = func() bool { return trusted.Swap(false) } // one more statement
	requests, err := p.Requests()
	if len(requests) != 2 || !errors.Is(err, tenure.ErrSessionLost) {
		t.Fatalf("%+v, %v; want two requests and the loss", requests, err)
	}
	reopen()
	request(tenure.RequestUndrain, "dan")
	take("undrain by dan;")
	if members, err := b.Members(t.Context()); err != nil || members[0].Status != tenure.StatusActive {
		t.Errorf("%+v, %v; want the status of the description", members, err)
	}
	request(tenure.RequestDrain, "eve")
	p.Abort()
	p = open(t, b, func(o *peerOptions) { o.id = p.id }) // another process
	take("")
}
