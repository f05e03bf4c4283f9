package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// changesOf returns the changes of a node's status with their requesters, oldest
// first.
func changesOf(t testing.TB, b *Backend, node uuid.UUID) []string {
	t.Helper()
	records, err := b.NodeHistory(context.Background(), history.Query{Node: node.String()})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, r := range slices.Backward(records) {
		change := r.Previous + ">" + r.Status
		if r.By != "" {
			change += " by " + r.By
		}
		all = append(all, change)
	}
	return all
}

// wide is a name of 200 emoji.
var wide = strings.Repeat("🦄", 200)

// Each change of a status records the requester of that change, and no other.
func TestRequesterOfAStatusIsRecorded(t *testing.T) {
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
	describe := func(status tenure.NodeStatus, by string) {
		t.Helper()
		if err := p.WriteDescription(tenure.Description{Status: status, StatusBy: by}); err != nil {
			t.Fatal(err)
		}
	}
	take := func(want int) {
		t.Helper()
		if requests, err := p.Requests(); err != nil || len(requests) != want {
			t.Fatalf("%+v, %v; want %d requests", requests, err, want)
		}
	}
	request(tenure.RequestDrain, "ann")
	request(tenure.RequestDrain, wide)
	take(2) // two requests: the later one counts
	describe(tenure.StatusDraining, wide)
	request(tenure.RequestDrain, "ann")
	take(1) // it is already draining
	request(tenure.RequestUndrain, "cem")
	take(1)
	describe(tenure.StatusActive, "cem")
	describe(tenure.StatusDraining, "")
	describe(tenure.StatusActive, "dan")
	request(tenure.RequestDrain, "ann")
	request(tenure.RequestUndrain, "bob")
	take(1 + 1) // nothing changes until the node updates its description
	describe(tenure.StatusJoining, "bob")
	members, err := b.Members(context.Background())
	if err != nil || members[0].ID != p.id || members[0].StatusBy != "bob" {
		t.Errorf("%+v, %v; want the status to be bob's wish", members, err)
	}
	describe(tenure.StatusActive, "")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		">active", "active>draining by " + wide, "draining>active by cem", "active>draining", "draining>active by dan",
		"active>joining by bob", "joining>active", "active>left",
	}
	if got := changesOf(t, b, p.id); !slices.Equal(got, want) {
		t.Errorf("the node went through %q; want %q", got, want)
	}
}

// A death has no requester, nor has the status that a node reports in a new
// session.
func TestDeathHasNoRequester(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	b := newBackend(t)
	watcher, p := open(t, b), open(t, b)
	if err := requestOfNode(b, tenure.RequestDrain, p.id); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Requests(); err != nil {
		t.Fatal(err)
	}
	watcher.drain() // it was alone, and is notified of the other node on its session
	p.Abort()       // in the middle of its drain
	eventually(t, b, "SELECT status = 'dead' FROM {nodes} WHERE id = $1", p.id)
	as := func(status tenure.NodeStatus) func(*peerOptions) {
		return func(o *peerOptions) {
			o.id, o.description = p.id, tenure.Description{Status: status, StatusBy: "bob, an hour ago"}
		}
	}
	second := open(t, b, as(tenure.StatusActive))
	third := open(t, b, as(tenure.StatusDraining)) // before the second is marked dead
	if err := third.Close(); err != nil {
		t.Fatal(err)
	}
	second.Abort()
	want := []string{">active", "active>draining by tests", "draining>dead", "dead>active", "active>draining", "draining>left"}
	if got := changesOf(t, b, p.id); !slices.Equal(got, want) {
		t.Errorf("the node went through %q; want %q", got, want)
	}
}

// A requester that no database can store is rejected before any statement is
// sent.
func TestRequestRejectsInvalidRequester(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := open(t, b)
	for _, by := range []string{"an\x00n", "an\xffn"} {
		request := tenure.Request{Kind: tenure.RequestDrain, Node: p.id, Force: true, By: by}
		if err := b.Request(context.Background(), request); !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%q: %v; want it refused", by, err)
		}
	}
}
