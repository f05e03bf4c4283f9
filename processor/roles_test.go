package processor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/processor"
)

// under runs a processor under a role until the test ends, or the returned
// function is called.
func (w *world) under(role string, node *tenure.Node, config processor.Config) (stop func()) {
	w.Helper()
	group, err := processor.NewGroup(node, tenure.NamedRole(role), w.pool, processor.GroupConfig{})
	w.must(err)
	config.Log = w.store.Log()
	w.must(group.Add(config))
	return postgrestest.Run(w, group.Run)
}

// A deployment renames the role of a processor, so that two nodes run it under
// two roles: one of them runs it, the other waits for the end of that term.
func TestProcessorRunsUnderOneRole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const events = 500
	var fromOld, fromNew atomic.Int64
	handle := func(calls *atomic.Int64) func(context.Context, pgx.Tx, []processor.Event) error {
		return func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
			calls.Add(1)
			return w.fill(ctx, tx, batch)
		}
	}
	config := processor.Config{Name: "counts", BatchSize: 5, PollInterval: 5 * time.Millisecond, MaxPollInterval: 50 * time.Millisecond}
	config.Handle = handle(&fromOld)
	stop := w.under("views", w.Node("old", tenure.Config{}), config)
	w.append(0)
	w.Await("the first event", func() bool { return len(w.numbers()) == 1 })
	owned := w.show("counts")
	config.Handle = handle(&fromNew)
	w.under("projections", w.Node("new", tenure.Config{}), config)
	for number := 1; number < events; number++ {
		w.append(number)
	}
	w.Await("all events", func() bool { return len(w.numbers()) >= events })
	w.Await("the refusal", func() bool { return w.show("counts").RefusedRole == "projections" })
	s := w.show("counts")
	if s.Role != "views" || s.Term != owned.Term || s.NodeName != "old" || s.RefusedNode != "new" || s.Errors != 0 || fromNew.Load() != 0 {
		t.Errorf("run under two roles, the other one called %d times: %+v", fromNew.Load(), s)
	}
	stop()
	w.append(events)
	w.Await("the other role", func() bool { return w.show("counts").Role == "projections" && len(w.numbers()) > events })
	numbers := w.numbers()
	slices.Sort(numbers)
	for i, number := range numbers {
		if number != i || i > events {
			t.Fatalf("handled %v", numbers)
		}
	}
	if s := w.show("counts"); s.Processed != events+1 || fromNew.Load() == 0 || s.RefusedRole != "" {
		t.Errorf("after the change of roles, with %d calls: %+v", fromNew.Load(), s)
	}
}

// A batch of a role that has lost the processor to another role does not count,
// even while its own term is valid.
func TestBatchOfReplacedRoleDoesNotCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	entered, release := make(chan struct{}), make(chan struct{})
	var calls atomic.Int64
	w.under("views", w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", PollInterval: 5 * time.Millisecond, MaxPollInterval: 50 * time.Millisecond,
		Handle: func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
			if calls.Add(1) == 1 {
				close(entered)
				<-release
			}
			return w.fill(ctx, tx, batch)
		},
	})
	w.append(1)
	<-entered
	// As a leader of the other role does if it considers this one's lease as expired.
	w.Exec(pgtest.SQL(w.backend, "UPDATE {processors} SET role = 'projections', term = 17"))
	close(release)
	w.Await("the event", func() bool { return len(w.numbers()) == 1 && w.show("counts").Processed == 1 })
	if s := w.show("counts"); s.Role != "views" || s.Errors != 0 || calls.Load() != 2 {
		t.Errorf("after %d calls: %+v", calls.Load(), s)
	}
}

// The cursor has passed unselected events, which is not saved yet, when an
// event is moved to the dead letters: it stays there.
func TestDeadLetterStaysAfterUnsavedSkip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var calls atomic.Int64
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", Selection: processor.Selection{ExactTags: []string{"number=2"}}, Poison: processor.PoisonDeadLetter,
		PollInterval: 5 * time.Millisecond, MaxPollInterval: 10 * time.Millisecond,
		Handle: func(context.Context, pgx.Tx, []processor.Event) error {
			calls.Add(1)
			return errors.Join(processor.ErrPoison, fmt.Errorf("never"))
		},
	})
	w.Await("the processor", func() bool { return w.exists("counts") && w.show("counts").Busy })
	for range 20 {
		w.append(1)
	}
	w.append(2)
	for range 20 {
		w.append(1)
	}
	w.Await("the dead letter", func() bool { return w.show("counts").DeadLetters == 1 })
	at := w.place(2)
	w.Await("the rest", func() bool { return at.Before(w.show("counts").Cursor) })
	if s := w.show("counts"); calls.Load() != 1 || s.Processed != 1 || strings.Contains(s.LastError, "moved") {
		t.Errorf("handled %d times: %+v", calls.Load(), s)
	}
}
