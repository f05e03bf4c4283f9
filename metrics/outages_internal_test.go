package metrics

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure/history"
)

// The first reading is where the count begins, an outage that is read again is not
// counted again, and the roles that are recorded later are taken over.
func TestOutagesAreCountedOnce(t *testing.T) {
	began := time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)
	outage := func(minute int, roles ...string) history.Outage {
		at := began.Add(time.Duration(minute) * time.Minute)
		return history.Outage{Began: at, Ended: at.Add(38 * time.Second), Roles: roles}
	}
	for _, c := range []struct {
		name  string
		reads [][]history.Outage
		count int
		last  int // minute
		roles int
	}{
		{"one before the first reading", [][]history.Outage{{outage(1, "a")}}, 0, 1, 1},
		{"the first one after a reading", [][]history.Outage{nil, {outage(1, "a")}}, 1, 1, 1},
		{"two at a time", [][]history.Outage{{outage(1)}, {outage(3), outage(2), outage(1)}}, 2, 3, 0},
		{"one read again with more roles", [][]history.Outage{nil, {outage(1, "a")}, {outage(1, "a", "b")}}, 1, 1, 2},
		{"none in the overlap", [][]history.Outage{nil, {outage(1, "a")}, nil}, 1, 1, 1},
	} {
		var got outages
		for _, read := range c.reads {
			got = got.with(read)
		}
		if want := outage(c.last); got.count != c.count || !got.last.Ended.Equal(want.Ended) || len(got.last.Roles) != c.roles {
			t.Errorf("%s: %d outages, the last one %+v; want %d, from %v, with %d roles", c.name, got.count, got.last, c.count, want.Began, c.roles)
		}
	}
}

// An outage is read again for five minutes after it was found, and not later: each read of
// it reads all terms since its begin.
func TestSettledOutageIsNotReadAgain(t *testing.T) {
	ended := time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)
	if o := (outages{}).with([]history.Outage{{Began: ended, Ended: ended}}); !o.since(ended.Add(time.Hour)).After(ended) {
		t.Error("an outage of an hour ago is read again; want only those after")
	}
	o := outages{known: true}.with([]history.Outage{{Began: ended.Add(-time.Minute), Ended: ended}})
	if from := o.since(o.found.Add(5 * time.Minute)); from.After(ended) {
		t.Errorf("after five minutes outages are read from %v on; want the one that ended at %v", from, ended)
	}
	if from := o.since(o.found.Add(5*time.Minute + time.Second)); !from.After(ended) {
		t.Errorf("after more than five minutes outages are read from %v on; want only those after %v", from, ended)
	}
}
