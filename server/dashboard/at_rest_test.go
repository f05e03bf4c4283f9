package dashboard

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
)

// completed is what a run returns whose work is completed until its next start.
type completed struct{ within time.Duration }

func (completed) Error() string               { return "completed" }
func (completed) Unwrap() error               { return tenure.Done }
func (c completed) NextWithin() time.Duration { return c.within }

// A role whose work is completed is at rest until its next start is overdue: no banner, no
// failover and no move. Then it is vacant.
func TestCompletedRoleIsAtRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	run := func(name, role string, within time.Duration) {
		t.Helper()
		node := w.Node(name, tenure.Config{Logger: slog.New(slog.DiscardHandler)})
		election, err := node.Election(tenure.NamedRole(role))
		if err != nil {
			t.Fatal(err)
		}
		if err := election.Run(t.Context(), func(context.Context, *tenure.Term) error { return completed{within} }); err != nil {
			t.Fatal(err)
		}
	}
	is := func(role, state string) func() bool {
		return func() bool { return w.role(role).State == state }
	}
	run("batch-1", "nightly", 0)
	w.await("the role is at rest", is("nightly", atRest))
	run("batch-2", "nightly", 0)
	w.await("the second term is shown", func() bool { r := w.role("nightly"); return r.State == atRest && r.Previous != "" })
	now := get[struct{ Now nowRecord }](w, "/api/now").Now
	if now.Vacant != 0 || now.AtRest != 1 || now.Health.Sentence != "No role needs a leader: 1 role is at rest." {
		t.Errorf("%d vacant, %d at rest, %q; want one at rest, and no word of a leader that it has", now.Vacant, now.AtRest, now.Health.Sentence)
	}
	if f := get[failoversRecord](w, "/api/failovers"); f.Failovers+f.Moves != 0 {
		t.Errorf("%d failovers and %d moves; want none", f.Failovers, f.Moves)
	}
	run("batch-3", "hourly", 300*time.Millisecond)
	w.await("the overdue role is vacant", is("hourly", vacant))
	if now := get[struct{ Now nowRecord }](w, "/api/now").Now; now.Vacant != 1 || !strings.Contains(now.Health.Sentence, "No node leads") || !strings.Contains(now.Health.Sentence, "hourly") {
		t.Errorf("%d vacant, %q; want hourly", now.Vacant, now.Health.Sentence)
	}
}
