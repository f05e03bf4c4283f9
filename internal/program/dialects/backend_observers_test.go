package dialects

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/testkit"
)

// failures is a log handler that records errors.
type failures struct {
	mu   sync.Mutex
	kept []error
}

func (f *failures) Enabled(context.Context, slog.Level) bool { return true }
func (f *failures) WithAttrs([]slog.Attr) slog.Handler       { return f }
func (f *failures) WithGroup(string) slog.Handler            { return f }

func (f *failures) Handle(_ context.Context, record slog.Record) error {
	record.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.kept = append(f.kept, err)
		}
		return true
	})
	return nil
}

// have reports whether an error that matches want was logged.
func (f *failures) have(want error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.kept, func(err error) bool { return errors.Is(err, want) })
}

// wants waits until an error that matches want is logged: a term can end before its
// node logs why.
func (f *failures) wants(t *testing.T, want error) {
	t.Helper()
	testkit.Await(t, "a logged error says "+want.Error(), func() bool { return f.have(want) })
}

// oneLeader checks invariants 1 and 2 once per millisecond for the elections of one role in
// this process.
func oneLeader(t *testing.T, elections ...*tenure.Election) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() {
		stop()
		<-done
	})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		var last *tenure.Term
		for ctx.Err() == nil {
			last = checkAll(t, elections, last)
			<-tick.C
		}
	}()
}

// checkAll returns the last term that was seen. A term that is valid before and after the
// checks of the other elections was valid in between, because trust never returns.
func checkAll(t *testing.T, elections []*tenure.Election, last *tenure.Term) *tenure.Term {
	t.Helper()
	first := make([]*tenure.Term, len(elections))
	for i, e := range elections {
		first[i] = e.Term()
	}
	var leading []*tenure.Term
	for i, e := range elections {
		if first[i] != nil && e.Term() == first[i] {
			leading = append(leading, first[i])
		}
	}
	if len(leading) > 1 {
		t.Errorf("Invariant 1: the terms %d and %d of %s are trusted at the same time", leading[0].Number(), leading[1].Number(), leading[0].Role())
	}
	for _, term := range leading {
		if last != nil && term != last && term.Number() <= last.Number() {
			t.Errorf("Invariant 2: term %d of %s came after term %d", term.Number(), term.Role(), last.Number())
		}
		last = term
	}
	return last
}
