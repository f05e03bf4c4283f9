package children

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"
)

// reportWrites notes writes of one child; those in failed have an error.
func reportWrites(w *Writes, from *Child, term int64, numbers []int64, failed map[int64]bool) {
	for _, number := range numbers {
		r := Report{Kind: "begun", Term: term, Sequence: number}
		w.note(from, r)
		r.Kind, r.Lead = "wrote", true
		if failed[number] {
			r.Error = "refused"
		}
		w.note(from, r)
	}
}

func TestCheckFindsFaultsOfWrites(t *testing.T) {
	t.Parallel()
	one, other := &Child{Name: "one"}, &Child{Name: "other"}
	for name, test := range map[string]struct {
		names  []string
		change func(w *Writes)
		want   string // empty: no fault
	}{
		"none":      {names: []string{"1/0", "1/4", "2/0"}},
		"repeated":  {names: []string{"1/0", "1/4", "1/4", "2/0"}, want: "1/4 was written twice"},
		"lost":      {names: []string{"1/0", "2/0"}, want: "1/4 was reported as written, and is lost"},
		"unasked":   {names: []string{"1/0", "1/4", "2/0", "2/4"}, want: "2/4 was written, and no child began to"},
		"late":      {names: []string{"1/0", "2/0", "1/4"}, want: "1/4 was written after a name of term 2"},
		"foreign":   {names: []string{"x"}, want: "has no term"},
		"both lead": {names: []string{"1/0", "1/4", "2/0"}, change: func(w *Writes) { w.note(one, Report{Kind: "begun", Term: 2}) }, want: "both wrote in term 2"},
		"failed":    {names: []string{"1/0", "1/4", "2/0"}, change: func(w *Writes) { reportWrites(w, other, 2, []int64{8}, map[int64]bool{8: true}) }, want: "2/8 by other: refused"},
		"unanswered": {names: []string{"1/0", "1/4", "2/0"}, change: func(w *Writes) {
			for number := range int64(2*writers + 1) {
				w.note(other, Report{Kind: "begun", Term: 3, Sequence: number})
			}
		}, want: "9 writes have no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &Writes{}
			reportWrites(w, one, 1, []int64{0, 4}, nil)
			reportWrites(w, other, 2, []int64{0}, nil)
			if test.change != nil {
				test.change(w)
			}
			err := w.Check(test.names, 2)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestAwaitIgnoresWritesOfOtherChild(t *testing.T) {
	t.Parallel()
	w, killed, next := &Writes{}, &Child{Name: "killed"}, &Child{Name: "next"}
	if w.note(killed, Report{Kind: "lead"}) {
		t.Error("Writes took a report that is not of Write")
	}
	report := func(term int64, from ...*Child) (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		var reporting sync.WaitGroup
		reporting.Go(func() { // exits when stop is called, which waits
			for number := int64(0); ctx.Err() == nil; number++ {
				for i, one := range from {
					reportWrites(w, one, term+int64(i), []int64{number}, nil)
				}
			}
		})
		return func() { cancel(); reporting.Wait() }
	}
	stop := report(1, killed)
	limited, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if leader, err := w.Await(limited, killed, 1); err == nil {
		t.Errorf("got %v, want an error while only the other child writes", leader)
	}
	stop()
	stop = report(2, killed, next)
	defer stop()
	if leader, err := w.Await(t.Context(), killed, 3); leader != next || err != nil {
		t.Errorf("got %v, %v; want the next child", leader, err)
	}
}
