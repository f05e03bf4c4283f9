package dashboard

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// The time without a leader after a silence includes the silence, on every page alike, and is
// the time of a failover. A requested step-down is a move, which no figure of failovers has.
func TestTimeWithoutALeaderIncludesTheSilence(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	w := newWorld(t, Config{})
	const lease = 2 * time.Second
	wire, silentNode := w.wiredNode("api-1", lease, "scheduler")
	w.led("scheduler", "api-1")
	_, other := w.wiredNode("api-2", lease, "scheduler")
	w.AwaitWatched(silentNode.ID())
	wire.Stall()
	r := w.led("scheduler", "api-2")
	if r.Without == nil || *r.Without < 1 || *r.Without > 30 {
		t.Fatalf("the role was without a leader for %v s; want at least 1", r.Without)
	}
	want := *r.Without
	failovers := get[failoversRecord](w, "/api/failovers")
	if failovers.Failovers != 1 || failovers.Moves != 0 || failovers.Median == nil || *failovers.Median.Without != want || *failovers.Max.Without != want || failovers.Points[0][1] != want {
		t.Errorf("the failovers: %+v; want one of %v s", failovers, want)
	}
	if row := failovers.Rows[0]; row.Kind != kindFailover || *row.Without != want || *row.Silent != want || *row.Vacant >= want {
		t.Errorf("the row is %+v; want %v s, with the free lock as a part", row, want)
	}
	if term := get[list[termRecord]](w, "/api/terms?role=scheduler").Rows[0]; *term.Without != want {
		t.Errorf("the term: %v s, want %v s", *term.Without, want)
	}
	if line := get[viewRecord](w, "/api/timeline?role=scheduler"); line.Spans[1][6] != want {
		t.Errorf("the timeline: %v s, want %v s", line.Spans[1][6], want)
	}
	if lanes := get[lanesRecord](w, "/api/lanes"); lanes.Lanes[0].Spans[1][4] != want {
		t.Errorf("the lane: %v s, want %v s", lanes.Lanes[0].Spans[1][4], want)
	}
	if move := get[incidentDetail](w, "/api/incident?id="+latestID).Moves[0]; *move.Without != want {
		t.Errorf("the incident: %v s, want %v s", *move.Without, want)
	}
	for _, e := range get[list[eventRecord]](w, "/api/events?limit=100").Rows {
		if e.Kind == eventBegan && e.NodeName == "api-2" && *e.Without != want {
			t.Errorf("the event: %v s, want %v s", *e.Without, want)
		}
	}

	if err := w.backend.Request(t.Context(), tenure.Request{Kind: tenure.RequestStepDown, Role: "scheduler", Term: r.Term, By: "anna"}); err != nil {
		t.Fatal(err)
	}
	w.await("a further term is shown", func() bool { return w.role("scheduler").Term > r.Term })
	failovers = get[failoversRecord](w, "/api/failovers")
	if failovers.Failovers != 1 || failovers.Moves != 1 || failovers.Day != 1 || *failovers.Max.Without != want || len(failovers.Points) != 1 || failovers.Total != 2 {
		t.Errorf("after the step-down of %s: %+v; want one failover and one move", other.Name(), failovers)
	}
	if moves := get[failoversRecord](w, "/api/failovers?kind=move&search=SCHED"); moves.Total != 1 || moves.Rows[0].Reason != string(history.EndSteppedDown) {
		t.Errorf("the moves: %+v", moves)
	}
}

// A share of the failovers is a case at the nearest rank, and is not shown for few cases.
func TestSharesOfFailoversAreCases(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cases                 int
		median, p95, p99, max float64 // 0: not shown
	}{{1, 1, 0, 0, 1}, {5, 3, 0, 0, 5}, {19, 10, 0, 0, 19}, {20, 10, 19, 20, 20}, {35, 18, 34, 35, 35}, {200, 100, 190, 198, 200}} {
		var all []failoverRecord
		for i := range c.cases {
			all = append(all, failoverRecord{gap: gap{Without: new(float64(c.cases - i))}, Kind: kindFailover})
		}
		s := summary(all, time.Now())
		for name, got := range map[string]struct {
			is   *gap
			want float64
		}{"median": {s.Median, c.median}, "95 %": {s.P95, c.p95}, "99 %": {s.P99, c.p99}, "longest": {s.Max, c.max}} {
			if (got.is == nil) != (got.want == 0) || got.is != nil && *got.is.Without != got.want {
				t.Errorf("the %s of %d failovers of 1 to %d s is %+v, want %v s", name, c.cases, c.cases, got.is, got.want)
			}
		}
	}
}
