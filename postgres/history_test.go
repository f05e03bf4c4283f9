package postgres

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// Every term is told of once, with its end, whatever that was.
func TestHistory(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	ctx := context.Background()
	p, other := open(t, b), open(t, b)
	first := p.take("scheduler")
	err := p.Release([]tenure.Release{{
		Role: tenure.NamedRole("scheduler"), Term: first.Term, Reason: tenure.EndSteppedDown, By: "alice",
	}})
	if err != nil {
		t.Fatal(err)
	}
	second := other.win("scheduler")
	p.drain() // it was alone, and hears of the other one on its session
	began := time.Now()
	other.Abort()
	eventually(t, b, "SELECT status = 'dead' FROM {nodes} WHERE id = $1", other.id)

	records, err := b.History(ctx, HistoryQuery{Role: "scheduler"})
	if err != nil || len(records) != 2 {
		t.Fatalf("%+v, %v; want two terms", records, err)
	}
	if r := records[0]; r.Term != second.Term || r.Node != other.id || r.Reason != tenure.EndCrashed || r.By != "" ||
		r.Ended.Sub(began) > patience || r.Vacant < 0 {
		t.Errorf("nobody has succeeded one that crashed: %+v", r)
	}
	if r := records[1]; r.Term != first.Term || r.Node != p.id || r.Reason != tenure.EndSteppedDown || r.By != "alice" ||
		r.Ended.Before(r.Began) || r.Vacant >= 0 {
		t.Errorf("a term whose leader was asked to end it: %+v", r)
	}

	third := p.win("scheduler")
	after, err := b.History(ctx, HistoryQuery{})
	if err != nil || len(after) != 3 || after[1] != records[0] || after[2] != records[1] {
		t.Fatalf("%+v, %v; want the two terms as they were, and another", after, err)
	}
	if r := after[0]; r.Term != third.Term || !r.Ended.IsZero() || r.Reason != "" || r.Vacant != third.Vacant ||
		r.Vacant != r.Began.Sub(records[0].Ended).Round(0) && r.Vacant-r.Began.Sub(records[0].Ended) > time.Millisecond {
		t.Errorf("the term that goes on: %+v", r)
	}
	for name, c := range map[string]struct {
		query HistoryQuery
		want  []int64
	}{
		"of a node":        {HistoryQuery{Node: p.id}, []int64{third.Term, first.Term}},
		"of another role":  {HistoryQuery{Role: "other"}, nil},
		"the newest":       {HistoryQuery{Limit: 1}, []int64{third.Term}},
		"the last of each": {HistoryQuery{Latest: true}, []int64{third.Term}},
		"since the second": {HistoryQuery{Since: records[0].Ended}, []int64{third.Term, second.Term}},
		"until the first":  {HistoryQuery{Until: records[1].Began}, []int64{first.Term}},
	} {
		found, err := b.History(ctx, c.query)
		var terms []int64
		for _, r := range found {
			terms = append(terms, r.Term)
		}
		if err != nil || !slices.Equal(terms, c.want) {
			t.Errorf("%s: terms %v, %v; want %v", name, terms, err, c.want)
		}
	}
}

// The history of nodes follows from the registry, in the same transactions.
func TestNodeHistory(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	ctx := context.Background()
	watcher, p := open(t, b), open(t, b)
	statuses := func(id uuid.UUID) []string {
		t.Helper()
		records, err := b.NodeHistory(ctx, HistoryQuery{Node: id})
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, r := range slices.Backward(records) {
			all = append(all, r.Previous+">"+r.Status)
		}
		return all
	}
	p.beat()
	watcher.drain() // it was alone, and hears of the other one on its session
	if err := p.Describe(tenure.Description{Status: tenure.StatusDraining}); err != nil {
		t.Fatal(err)
	}
	if err := p.Describe(tenure.Description{Status: tenure.StatusDraining, Version: "2"}); err != nil {
		t.Fatal(err)
	}
	p.Abort()
	eventually(t, b, "SELECT status = 'dead' FROM {nodes} WHERE id = $1", p.id)
	again := open(t, b, func(o *peerOptions) { o.id = p.id })
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	want := []string{">active", "active>draining", "draining>dead", "dead>active", "active>left"}
	if got := statuses(p.id); !slices.Equal(got, want) {
		t.Errorf("the node went through %q; want %q", got, want)
	}
	if got := statuses(watcher.id); !slices.Equal(got, []string{">active"}) {
		t.Errorf("the other one went through %q", got)
	}
}
