package alerts

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// handOver makes another process lead and repeats it as often as needed: the old
// leader campaigns again immediately.
func (w *world) handOver(from, to *process) {
	w.Helper()
	w.await("that the other leads", func() bool {
		if to.leads() {
			return true
		}
		for _, election := range from.node.Elections() {
			if err := election.HandOver(w.Context(), to.node.ID()); err != nil && !errors.Is(err, tenure.ErrNotLeader) {
				w.Fatal(err)
			}
		}
		return false
	})
}

// leads reports whether a process has done a round of its term.
func (p *process) leads() bool {
	p.engine.mu.Lock()
	defer p.engine.mu.Unlock()
	return p.engine.leads && p.engine.took > 0
}

func (p *process) figures() string {
	recorder := httptest.NewRecorder()
	p.engine.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics/cluster", http.NoBody))
	return recorder.Body.String()
}

// TestSamplesSurviveBetweenTerms: a process that leads again still has what it measured in
// its first term, though the database has lost its samples; while another leads it
// shows nothing of it.
func TestSamplesSurviveBetweenTerms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	high := Rule{Name: "high", Condition: "max(max_over_time(tenure_queue[1h])) > 5", Severity: "warning", Notify: []string{"hook"}}
	fresh := Rule{Name: "fresh", Condition: "max(tenure_fresh) > 0", Severity: "warning", Notify: []string{"hook"}}
	a := w.start("a", Config{Rules: []Rule{high, fresh}})
	w.await("that the first leads", a.leads)
	w.report(a.node, map[string]float64{"tenure_queue": 6})
	w.wantReceived("high firing")
	b := w.start("b", Config{Interval: time.Hour})
	w.handOver(a, b)
	if figures := a.figures(); strings.Contains(figures, "tenure_queue") || !strings.Contains(figures, "tenure_aggregator_is_leader 0") {
		t.Errorf("the first shows\n%s", figures)
	}
	w.exec(`TRUNCATE {samples}`)
	w.kill(b)
	w.await("that the first leads again", a.leads)
	w.report(a.node, map[string]float64{"tenure_fresh": 1})
	w.wantReceived("high firing", "fresh firing")
	if states := w.states(); !slices.Equal(states, []string{"fresh firing", "high firing"}) {
		t.Errorf("the states are %q", states)
	}
	if figures := a.figures(); !strings.Contains(figures, "tenure_fresh 1") || !strings.Contains(figures, "\ntenure_aggregator_round_age_seconds ") || strings.Contains(figures, "tenure_queue") {
		t.Errorf("the first shows\n%s", figures)
	}
}

// TestSamplesAreReadAgainWhenClockGoesBack: where the database's clock goes back, as with another
// server, what was measured is read again, without what has a time to come: or the
// samples of now would seem old.
func TestSamplesAreReadAgainWhenClockGoesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.idle("n")
	w.report(node, map[string]float64{"tenure_queue": 6})
	engine, err := New(Config{Database: w.pool})
	if err != nil {
		t.Fatal(err)
	}
	l := &termWork{engine: engine, tables: w.tables, log: node.Logger(), evaluator: newEvaluator(engine.store), unreadable: map[uuid.UUID]bool{}}
	measured := func() string {
		now := value[time.Time](w, `SELECT clock_timestamp()`)
		vector, err := l.evaluator.query(t.Context(), "max(tenure_queue)", now)
		if err != nil || len(vector) == 0 {
			return fmt.Sprint("nothing, ", err)
		}
		return fmt.Sprint(vector[0].F)
	}
	w.exec(`UPDATE {samples} SET at = at + interval '1 hour'`)
	engine.clock.at, engine.clock.local = value[time.Time](w, `SELECT clock_timestamp() + interval '1 hour'`), time.Now()
	if err := l.round(t.Context()); err == nil || !strings.Contains(err.Error(), "went back") {
		t.Errorf("the error is %v", err)
	}
	for _, want := range []string{"4", "3"} {
		queue, _ := strconv.ParseFloat(want, 64)
		w.report(node, map[string]float64{"tenure_queue": queue})
		if err := l.round(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := measured(); got != want {
			t.Errorf("now measured is %s; want %s", got, want)
		}
	}
}
