package metrics

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure/history"
)

// The first reading is where the histogram begins. Each later term counts once, also if
// it is read again or its begin was committed late, and not if its silence is unknown.
func TestSilencesAreCountedOnce(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)
	term := func(number int64, second int, silent time.Duration) history.Term {
		return history.Term{Role: "billing", Term: number, Began: at.Add(time.Duration(second) * time.Second), PrecedingSilence: silent}
	}
	frozen := term(3, 20, 9400*time.Millisecond)
	for _, c := range []struct {
		name  string
		reads [][]history.Term
		count uint64
		sum   time.Duration
	}{
		{"terms before the first reading", [][]history.Term{{term(2, 10, time.Second)}, {term(2, 10, time.Second), term(1, 0, time.Second)}}, 0, 0},
		{"a freeze", [][]history.Term{{term(2, 10, time.Second)}, {frozen, term(2, 10, time.Second)}}, 1, 9400 * time.Millisecond},
		{"one that is read again", [][]history.Term{{term(2, 10, time.Second)}, {frozen}, {frozen}, {term(4, 40, time.Second), frozen}}, 2, 10400 * time.Millisecond},
		{"one that is read again after the overlap", [][]history.Term{nil, {frozen}, {term(4, 120, time.Second)}, {term(4, 120, time.Second), frozen}}, 2, 10400 * time.Millisecond},
		{"one committed late", [][]history.Term{{term(2, 10, time.Second)}, {term(4, 40, time.Second)}, {term(4, 40, time.Second), frozen}}, 2, 10400 * time.Millisecond},
		{"an unknown silence", [][]history.Term{nil, {term(1, 0, -1)}}, 0, 0},
	} {
		got := &silences{}
		for _, read := range c.reads {
			before, earlier := got, got.durations.Count
			if got = got.with(read); before.durations.Count != earlier {
				t.Errorf("%s: an earlier reading changed", c.name)
			}
		}
		if d := got.durations; d.Count != c.count || d.Sum != c.sum || d.Buckets[5*time.Minute] != c.count || d.Buckets[5*time.Second] > c.count-min(c.count, 1) {
			t.Errorf("%s: %+v; want %d terms, %v together", c.name, d, c.count, c.sum)
		}
	}
}
