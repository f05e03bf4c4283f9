package postgres

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres/internal/link"
)

// A session that Wait has woken asks for requests only if one may have been reported: by
// a notification that is not about a node, or by a heartbeat.
func TestRequestsAreReadWhenReported(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p, other := open(t, b), open(t, b)
	// silently adds a request that no notification reports.
	silently := func() {
		t.Helper()
		exec(t, b, `INSERT INTO {requests} (node_id, kind, role, term, requested_by) VALUES ($1, 'drain', '', 0, 'a test')`, p.id)
	}
	wake := func(channel, payload string) {
		t.Helper()
		p.drain()
		exec(t, b, `SELECT pg_notify($1, $2)`, channel, payload)
		if !p.wait(patience) {
			t.Fatalf("notification %q did not wake the session", payload)
		}
	}
	take := func(want int, after string) {
		t.Helper()
		if requests, err := p.Requests(); err != nil || len(requests) != want {
			t.Fatalf("the requests after %s: %+v, %v; want %d", after, requests, err, want)
		}
	}
	take(0, "the start")

	silently()
	wake(b.names.ElectionsChannel(), uuid.NewString())
	take(0, "a notification about a node")
	take(1, "a call that nothing preceded")

	for _, payload := range []string{link.RolesOnly, link.AnyNode, "of another version"} {
		silently()
		wake(b.names.ElectionsChannel(), payload)
		wake(b.names.ElectionsChannel(), other.id.String()) // does not hide the first
		take(1, "the notification "+payload)
	}

	silently()
	wake(b.names.ElectionsChannel(), uuid.NewString())
	if pending, err := p.Heartbeat(tenure.Load{}); err != nil || !pending {
		t.Fatalf("pending %t, %v", pending, err)
	}
	take(1, "a heartbeat that found one")

	request := tenure.Request{Kind: tenure.RequestDrain, Node: p.id, Force: true, By: "a test"}
	if err := b.Request(context.Background(), request); err != nil {
		t.Fatal(err)
	}
	for taken := 0; taken == 0; {
		if !p.wait(patience) { // for this report, or an earlier one about a node
			t.Fatal("a request was not reported")
		}
		requests, err := p.Requests()
		if err != nil {
			t.Fatal(err)
		}
		taken = len(requests)
	}
}
