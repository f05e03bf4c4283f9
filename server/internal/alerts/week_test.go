package alerts

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/metrics"
	"github.com/exactly-one/tenure/server/internal/series"
)

// week is three nodes over some days of virtual time, as the leader's rounds see
// them. Each day has the same troubles, at the times of the constants.
type week struct {
	store *series.Store
	now   time.Time
	nodes []*simulated
	leads int // which node leads; -1 if none does
	last  int // which led last
	terms float64
}

// simulated is a node, as one process after the other.
type simulated struct {
	id                uuid.UUID
	name              string
	gone              bool
	failovers, losses float64
}

const (
	round = 10 * time.Second

	crashAt   = 20 * time.Minute // the leader's process dies and starts again
	stormAt   = 40 * time.Minute // 40 failovers, among processes that live
	stormFor  = 10 * time.Minute
	fewAt     = 65 * time.Minute // nine failovers, three to each node
	fewFor    = 5 * time.Minute
	deployAt  = 85 * time.Minute // all processes are started again
	vacantAt  = 100 * time.Minute
	vacantFor = time.Hour
	goneAt    = 180 * time.Minute // node c is gone
	goneFor   = 30 * time.Minute
	troubled  = 4 * time.Hour // so much of a day; in the rest all is quiet
)

func newWeek(begin time.Time) *week {
	w := &week{store: series.New(series.Config{}), now: begin, leads: -1, last: -1}
	for _, name := range []string{"a", "b", "c"} {
		w.nodes = append(w.nodes, &simulated{id: uuid.New(), name: name})
	}
	w.lead(0)
	return w
}

// lead gives the role to a node, or to none.
func (w *week) lead(n int) {
	if w.leads >= 0 {
		w.nodes[w.leads].losses++
	}
	if w.leads = n; n < 0 {
		return
	}
	w.terms++
	if w.last >= 0 && w.last != n {
		w.nodes[n].failovers++
	}
	w.last = n
}

// restart is a new process of a node; another one leads if it did.
func (w *week) restart(n int) {
	old := w.nodes[n]
	w.nodes[n] = &simulated{id: uuid.New(), name: old.name}
	if w.leads == n {
		w.leads = -1
		w.lead((n + 1) % len(w.nodes))
	}
}

// trouble is what happens at a time of the day.
func (w *week) trouble(at time.Duration) {
	within := func(begin, length time.Duration) bool { return at >= begin && at < begin+length }
	every := func(d time.Duration) bool { return at%d < round }
	switch {
	case at == crashAt:
		w.restart(w.leads)
	case within(stormAt, stormFor) && every(15*time.Second), within(fewAt, fewFor) && every(34*time.Second):
		w.lead((w.leads + 1) % len(w.nodes))
	case at == deployAt, at == deployAt+30*time.Second, at == deployAt+time.Minute:
		w.restart(int((at - deployAt) / (30 * time.Second)))
	case at == vacantAt:
		w.lead(-1)
	case at == vacantAt+vacantFor:
		w.lead(1)
	case at == goneAt:
		w.nodes[2].gone = true
		w.nodes[2].id = uuid.New()
		if w.leads == 2 {
			w.leads = -1
			w.lead(0)
		}
	case at == goneAt+goneFor:
		w.nodes[2] = &simulated{id: uuid.New(), name: "c"}
	}
}

// sample is what a node measures.
func (w *week) sample(n int) metrics.Snapshot {
	one := w.nodes[n]
	leads := 0.0
	if w.leads == n {
		leads = 1
	}
	role := func(name string, value float64, kind metrics.SeriesType) metrics.Series {
		return metrics.Series{Name: name, Labels: map[string]string{"role": "scheduler"}, Value: value, Type: kind}
	}
	return metrics.Snapshot{Node: one.id, NodeName: one.name, At: w.now.Add(-time.Second), Series: []metrics.Series{
		role("tenure_leader_is_leader", leads, metrics.GaugeSeries),
		role("tenure_leader_failovers_total", one.failovers, metrics.CounterSeries),
		role("tenure_leader_losses_total", one.losses, metrics.CounterSeries),
		{Name: "tenure_leader_connected", Value: 1, Type: metrics.GaugeSeries},
	}}
}

// round does what the leader does each time: it takes samples, and completes them.
func (w *week) round(at time.Duration) {
	w.now = w.now.Add(round)
	w.trouble(at)
	var known []series.Node
	for n, one := range w.nodes {
		if one.gone {
			continue
		}
		w.store.Append(w.sample(n))
		node := series.Node{ID: one.id, Name: one.name, Alive: true}
		if w.leads == n {
			node.Leads = []string{"scheduler"}
		}
		known = append(known, node)
	}
	w.store.Complete(w.now, []string{"scheduler"}, known)
}

// span is from when to when an alert fired, by the time of the first day.
type span struct{ from, to time.Duration }

// watch evaluates rules over some days of some length, and returns when each
// fired. What still fires at the end has the end as its last time.
func watch(t *testing.T, days int, day time.Duration, rules []Rule) map[string][]span {
	t.Helper()
	w := newWeek(time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC))
	e := newEvaluator(w.store)
	present := map[alertKey]alert{}
	since, spans := map[string]time.Duration{}, map[string][]span{}
	total := time.Duration(days) * day
	for at := time.Duration(0); at < total; at += round {
		w.round(at % day)
		if at%(3*round) != 0 && (days == 1 || at%day > troubled) {
			continue // the test need not take long
		}
		outcomes := e.evaluate(t.Context(), w.now, rules)
		for _, o := range outcomes {
			if o.err != nil {
				t.Fatal(o.err)
			}
		}
		present = apply(present, step(w.now, present, outcomes, true, attention{}))
		firing := map[string]bool{}
		for key, a := range present {
			firing[key.rule] = firing[key.rule] || a.State == Firing
		}
		for _, r := range rules {
			from, was := since[r.Name]
			switch {
			case firing[r.Name] && !was:
				since[r.Name] = at
			case !firing[r.Name] && was:
				spans[r.Name] = append(spans[r.Name], span{from, at})
				delete(since, r.Name)
			}
		}
	}
	for name, from := range since {
		spans[name] = append(spans[name], span{from, total})
	}
	return spans
}

// TestRulesFireOverOneWeek: when the rules of the source's document, those that are warned of, and
// those that are proposed instead fire over a cluster's troubles. By default they
// are those of one short day; TENURE_TEST_WEEK=1 makes it a week of whole days.
func TestRulesFireOverOneWeek(t *testing.T) {
	t.Parallel()
	days, day := 1, troubled
	if os.Getenv("TENURE_TEST_WEEK") != "" {
		days, day = 7, 24*time.Hour
	}
	daily := func(spans ...span) (all []span) {
		for i := range days {
			for _, s := range spans {
				begin := time.Duration(i) * day
				all = append(all, span{begin + s.from, begin + s.to})
			}
		}
		return all
	}
	const window = 5 * time.Minute
	vacant := daily(span{vacantAt + 30*time.Second, vacantAt + vacantFor})
	total := time.Duration(days) * day
	always := []span{{0, total}}
	// Until all processes have been started again, and from the next loss on.
	sinceLoss := []span{{stormAt, deployAt + time.Minute}}
	for i := range days {
		begin := time.Duration(i) * day
		sinceLoss = append(sinceLoss, span{begin + vacantAt, begin + day + deployAt + time.Minute})
	}
	sinceLoss[days].to = total
	tests := []struct {
		name, condition string
		wait            time.Duration
		trapped         bool
		want            []span
	}{
		{name: "no_scheduler_leader", condition: "sum(forge_leader_is_leader{role='scheduler'}) == 0", wait: 30 * time.Second, want: vacant},
		{name: "never absent", condition: "absent(forge_leader_is_leader{role='scheduler'})", trapped: true},
		{name: "count of nothing", condition: "count(forge_leader_is_leader{role='scheduler'} == 1) == 0", trapped: true},
		{
			name: "count of nothing or 0", condition: "(count(forge_leader_is_leader{role='scheduler'} == 1) or vector(0)) == 0",
			wait: 30 * time.Second, want: vacant,
		},
		{name: "bool", condition: "sum(forge_leader_is_leader{role='scheduler'}) == bool 0", trapped: true, want: always},

		{name: "frequent_failovers", condition: "rate(forge_leader_failovers_total[5m]) > 5", trapped: true},
		{
			name: "of each process", condition: "increase(forge_leader_failovers_total[5m]) > 5", trapped: true,
			want: daily(span{stormAt + 3*time.Minute, stormAt + stormFor + time.Minute}), // the few are spread over three nodes
		},
		{
			name: "of all processes", condition: "sum by (role) (increase(forge_leader_failovers_total[5m])) > 5",
			want: daily(span{stormAt + time.Minute, stormAt + stormFor + 4*time.Minute}, span{fewAt + 3*time.Minute, fewAt + 3*time.Minute + window}),
		},
		{name: "resets", condition: "resets(forge_leader_failovers_total[1h]) > 0", trapped: true},

		{name: "never resolves", condition: "tenure_leader_losses_total > 0", trapped: true, want: sinceLoss},
		{
			name: "resolves", condition: "increase(tenure_leader_losses_total[5m]) > 0",
			want: daily(span{stormAt, stormAt + stormFor + window}, span{fewAt, fewAt + fewFor + window}, span{vacantAt, vacantAt + window}),
		},

		{name: "vanishes", condition: "tenure_leader_connected{node_name='c'} == 0", trapped: true},
		{
			name: "vanishes or absent", condition: "tenure_leader_connected{node_name='c'} == 0 or absent(tenure_leader_connected{node_name='c'})",
			want: daily(span{goneAt, goneAt + goneFor}),
		},
	}
	var rules []Rule
	for _, test := range tests {
		rules = append(rules, Rule{Name: test.name, Condition: test.condition, Severity: "warning", For: test.wait})
	}
	spans := watch(t, days, day, rules)
	near := func(a, b time.Duration) bool { return (a - b).Abs() <= 90*time.Second }
	for _, test := range tests {
		if got := spans[test.name]; !slices.EqualFunc(got, test.want, func(a, b span) bool { return near(a.from, b.from) && near(a.to, b.to) }) {
			t.Errorf("%s fired\n%v; it should have\n%v", test.name, got, test.want)
		}
	}
}
