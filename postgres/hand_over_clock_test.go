package postgres_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
)

// TestHandOverDuringClockStep: while the clock of the server is set, in either direction,
// each hand-over ends, and one of both nodes leads the role soon. When the clock is steady,
// a hand-over reaches its target, and terms only grow.
func TestHandOverDuringClockStep(t *testing.T) {
	t.Parallel()
	server, clock := pgtest.StartWithClock(t, pgtest.Options{})
	i := postgrestest.On(t, server, server.Schema(t))
	i.Migrate()
	role := tenure.NamedRole("billing")
	var elections [2]*tenure.Election
	for n, name := range []string{"first", "second"} {
		election, err := i.Node(name, tenure.Config{Lease: 4 * time.Second}).Election(role)
		if err != nil {
			t.Fatal(err)
		}
		if err := election.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		elections[n] = election
	}
	ids := func(n int) uuid.UUID { return elections[n].Node().ID() }
	leads := func() (n int) {
		t.Helper()
		i.Await("one of both nodes to lead", func() bool {
			first, second := elections[0].IsLeader(), elections[1].IsLeader()
			if n = 0; second {
				n = 1
			}
			return first != second
		})
		return n
	}
	var last int64
	grown := func(n int) {
		t.Helper()
		term := elections[n].Term()
		if term == nil || term.Number() <= last {
			t.Fatalf("the term is %v after the number %d, want a larger one", term, last)
		}
		last = term.Number()
	}
	for _, step := range []time.Duration{10 * time.Minute, -10 * time.Minute, 0, 365 * 24 * time.Hour, 0, -24 * time.Hour, 0} {
		ctx, stop := context.WithCancel(t.Context())
		var handing sync.WaitGroup
		handing.Go(func() {
			for ctx.Err() == nil { // again and again, since processes of the server see the step at different times
				n := leads()
				err := elections[n].HandOver(t.Context(), ids(1-n))
				if err != nil && !errors.Is(err, tenure.ErrNotLeader) && !errors.Is(err, tenure.ErrNotActive) && !errors.Is(err, tenure.ErrUnknownNode) &&
					!errors.Is(err, tenure.ErrSessionLost) {
					t.Errorf("clock %v: %v", step, err)
				}
			}
		})
		clock.Set(t, step)
		stop()
		handing.Wait()
		i.Await("a hand-over to reach its target", func() bool {
			n := leads()
			return elections[n].HandOver(t.Context(), ids(1-n)) == nil && leads() == 1-n
		})
		grown(leads())
	}
}
