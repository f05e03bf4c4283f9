package series

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/exactly-one/tenure/metrics"
)

var begin = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func gauge(name string, value float64, pairs ...string) metrics.Series {
	return metrics.Series{Name: name, Labels: labelMap(pairs), Value: value, Type: metrics.GaugeSeries}
}

func counter(name string, value float64, pairs ...string) metrics.Series {
	return metrics.Series{Name: name, Labels: labelMap(pairs), Value: value, Type: metrics.CounterSeries}
}

func labelMap(pairs []string) map[string]string {
	all := map[string]string{}
	for pair := range slices.Chunk(pairs, 2) {
		all[pair[0]] = pair[1]
	}
	return all
}

var engine = promql.NewEngine(promql.EngineOpts{
	MaxSamples: 50_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{}),
})

// evaluate answers a query as lines, sorted.
func evaluate(t testing.TB, s *Store, query string, at time.Time) []string {
	t.Helper()
	q, err := engine.NewInstantQuery(context.Background(), s, nil, query, at)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	result := q.Exec(context.Background())
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	lines := strings.Split(result.String(), "\n")
	for i, line := range lines {
		lines[i], _, _ = strings.Cut(line, " @[")
	}
	slices.Sort(lines)
	return lines
}

func wantAnswer(t *testing.T, s *Store, query string, at time.Time, want ...string) {
	t.Helper()
	if want == nil {
		want = []string{""}
	}
	if got := evaluate(t, s, query, at); !slices.Equal(got, want) {
		t.Errorf("%s is %q; want %q", query, got, want)
	}
}

// TestVacantRoleSumsToZero: the sum over the leaders is 0, not nothing, when a role has no
// candidate, when its leader is dead, and when its leader is silent.
func TestVacantRoleSumsToZero(t *testing.T) {
	t.Parallel()
	s, id := New(Config{}), uuid.New()
	const condition = "sum(forge_leader_is_leader{role='scheduler'}) == 0"
	reports := func(want bool, nodes []Node) {
		t.Helper()
		if s.AllReport(nodes) != want {
			t.Errorf("that all nodes report is %v", !want)
		}
	}
	known := []Node{{ID: id, Name: "a", Alive: true}}
	reports(false, known)
	reports(true, nil)
	s.Complete(begin, []string{"scheduler"}, nil)
	wantAnswer(t, s, condition, begin, "{} => 0")

	at := begin.Add(10 * time.Second)
	s.Append(metrics.Snapshot{Node: id, NodeName: "a", At: at, Series: []metrics.Series{gauge("tenure_leader_is_leader", 1, "role", "scheduler")}})
	s.Complete(at, []string{"scheduler"}, known)
	reports(true, known)
	wantAnswer(t, s, condition, at)
	wantAnswer(t, s, "sum by (node_name) (tenure_leader_is_leader)", at, `{node_name="a"} => 1`, `{} => 0`)
	reporting := `{__name__="tenure_node_reporting", node="` + id.String() + `", node_name="a"} => `
	wantAnswer(t, s, "tenure_node_up", at, `{__name__="tenure_node_up", node_name="a"} => 1`)
	wantAnswer(t, s, "tenure_node_reporting", at, reporting+"1")

	later := at.Add(35 * time.Second)
	s.Complete(later, []string{"scheduler"}, known)
	wantAnswer(t, s, condition, later)
	later = later.Add(time.Second)
	s.Complete(later, []string{"scheduler"}, known) // it says nothing
	reports(false, known)
	wantAnswer(t, s, "tenure_node_up", later, `{__name__="tenure_node_up", node_name="a"} => 1`)
	wantAnswer(t, s, "tenure_node_reporting", later, reporting+"0") // after 35 s of silence
	wantAnswer(t, s, condition, later, "{} => 0")
	wantAnswer(t, s, "sum by (node_name) (tenure_leader_is_leader)", later, `{node_name="a"} => 0`, `{} => 0`)

	later = later.Add(time.Second)
	s.Append(metrics.Snapshot{Node: id, NodeName: "a", At: later, Series: []metrics.Series{gauge("tenure_leader_is_leader", 1, "role", "scheduler")}})
	s.Complete(later, []string{"scheduler"}, known)
	wantAnswer(t, s, condition, later)
	known[0].Alive = false
	later = later.Add(time.Second)
	s.Complete(later, []string{"scheduler"}, known)
	wantAnswer(t, s, condition, later, "{} => 0")
	wantAnswer(t, s, "tenure_node_up == 0", later, `{__name__="tenure_node_up", node_name="a"} => 0`)
	wantAnswer(t, s, "tenure_node_reporting", later)
	later = later.Add(time.Second)
	s.Complete(later, []string{"scheduler"}, nil) // it is forgotten
	wantAnswer(t, s, "tenure_node_up", later)
}

// TestLeadersFollowTheDatabase: a role that is led by the database is led, also where
// its node says nothing, or said otherwise in its last sample.
func TestLeadersFollowTheDatabase(t *testing.T) {
	t.Parallel()
	s, id := New(Config{}), uuid.New()
	const condition = "sum(forge_leader_is_leader{role='scheduler'}) == 0"
	roles, leads := []string{"scheduler"}, []Node{{ID: id, Name: "a", Alive: true, Leads: []string{"scheduler"}}}
	idle := []Node{{ID: id, Name: "a", Alive: true}}
	at := begin
	tick := func(nodes []Node, measured ...float64) {
		at = at.Add(10 * time.Second)
		for _, value := range measured {
			s.Append(metrics.Snapshot{Node: id, NodeName: "a", At: at.Add(-time.Second), Series: []metrics.Series{gauge("tenure_leader_is_leader", value, "role", "scheduler")}})
		}
		s.Complete(at, roles, nodes)
	}
	tick(leads)
	wantAnswer(t, s, condition, at)
	tick(leads)
	wantAnswer(t, s, "sum(tenure_leader_is_leader)", at, "{} => 1")
	tick(idle)
	wantAnswer(t, s, condition, at, "{} => 0")
	tick(leads, 0)
	wantAnswer(t, s, "sum(tenure_leader_is_leader)", at, "{} => 1")
	tick(leads, 1)
	wantAnswer(t, s, "sum(tenure_leader_is_leader)", at, "{} => 1")
	tick(idle, 0)
	wantAnswer(t, s, condition, at, "{} => 0")
	tick(leads, 1)
	at = at.Add(35 * time.Second)
	tick(leads) // it leads, and sends no more samples
	wantAnswer(t, s, "sum(tenure_leader_is_leader)", at, "{} => 1")
	tick(idle, 0)
	tick(idle, 0)
	wantAnswer(t, s, "sum by (node_name) (tenure_leader_is_leader{role='scheduler'})", at, `{node_name="a"} => 0`, `{} => 0`)
}

// TestSummedRolesKeepTheirValue: the value of a node that sends the sum over many roles, without
// their names, is not set to 0.
func TestSummedRolesKeepTheirValue(t *testing.T) {
	t.Parallel()
	s, id := New(Config{}), uuid.New()
	s.Append(metrics.Snapshot{Node: id, NodeName: "a", At: begin, Series: []metrics.Series{gauge("tenure_leader_is_leader", 7, "role", "")}})
	for i := range 3 {
		at := begin.Add(time.Duration(i) * time.Second)
		s.Complete(at, nil, []Node{{ID: id, Name: "a", Alive: true}})
		wantAnswer(t, s, "sum(tenure_leader_is_leader)", at, "{} => 7")
	}
}

// TestMetricsAnswerToEveryPrefix: a metric answers to every prefix, and is called as it was asked
// for.
func TestMetricsAnswerToEveryPrefix(t *testing.T) {
	t.Parallel()
	s, id := New(Config{Prefix: "shop"}), uuid.New()
	s.Append(metrics.Snapshot{Node: id, NodeName: "a", At: begin, Series: []metrics.Series{
		gauge("shop_leader_roles_led", 2), gauge("go_goroutines", 9, "node", "x"),
	}})
	who := `, node="` + id.String() + `", node_name="a"} => 2`
	for _, prefix := range []string{"tenure", "forge", "shop"} {
		wantAnswer(t, s, prefix+"_leader_roles_led", begin, `{__name__="`+prefix+`_leader_roles_led"`+who)
	}
	wantAnswer(t, s, `{__name__=~"shop_.*"}`, begin, `{__name__="shop_leader_roles_led"`+who)
	wantAnswer(t, s, `sum({__name__!="forge_leader_roles_led",node_name="a"})`, begin, "{} => 11")
	wantAnswer(t, s, "other_leader_roles_led", begin)
	wantAnswer(t, s, `sum by (exported_node) (go_goroutines)`, begin, `{exported_node="x"} => 9`)
}

// TestRatesCountOnlyLiveSeries: the counts of a node that kept running are seen, and a series that a
// node stops measuring ends immediately.
func TestRatesCountOnlyLiveSeries(t *testing.T) {
	t.Parallel()
	s, id := New(Config{}), uuid.New()
	var at time.Time
	for i := range 61 {
		at = begin.Add(time.Duration(i) * 10 * time.Second)
		s.Append(metrics.Snapshot{Node: id, NodeName: "a", At: at, Series: []metrics.Series{
			counter("tenure_leader_failovers_total", float64(i), "role", "r"), gauge("tenure_leader_term", 1, "role", "r"),
		}})
	}
	wantAnswer(t, s, `sum(rate(forge_leader_failovers_total[5m]))`, at, "{} => 0.1")
	wantAnswer(t, s, `round(sum(increase(tenure_leader_failovers_total[5m])))`, at, "{} => 30")
	at = at.Add(10 * time.Second)
	s.Append(metrics.Snapshot{Node: id, NodeName: "a", At: at, Series: []metrics.Series{counter("tenure_leader_failovers_total", 61, "role", "r")}})
	wantAnswer(t, s, "tenure_leader_term", at)
}

// TestOldSamplesAreCoarser: a day is kept, the older the coarser, without gaps and without
// overlaps, within a bounded number of samples.
func TestOldSamplesAreCoarser(t *testing.T) {
	t.Parallel()
	var line timeline
	const step = 10_000
	now := begin.UnixMilli()
	for i := range int64(30 * 360) { // 30 hours
		now = begin.UnixMilli() + i*step
		line.append(sample{now, float64(i)})
		line.append(sample{now - 1, -1}) // too late
		if i%360 == 0 {
			line.drop(now)
		}
	}
	line.drop(now)
	all := line.read(math.MinInt64, math.MaxInt64, nil)
	if len(all) > 1300 {
		t.Errorf("there are %d samples", len(all))
	}
	for i, s := range all {
		if want := float64((s.at - begin.UnixMilli()) / step); s.value != want {
			t.Fatalf("at %d is %v; want %v", s.at, s.value, want)
		}
		if i == 0 {
			continue
		}
		gap, age := s.at-all[i-1].at, time.Duration(now-s.at)*time.Millisecond
		most := int64(step)
		if age > 6*time.Hour {
			most = 300_000
		} else if age > time.Hour {
			most = 60_000
		}
		if gap <= 0 || gap > most {
			t.Fatalf("%v ago there is a gap of %d ms", age, gap)
		}
	}
	if age := time.Duration(now-all[0].at) * time.Millisecond; age < 24*time.Hour || age > 29*time.Hour+30*time.Minute {
		t.Errorf("the oldest sample is of %v ago, want a day and at most one chunk more", age)
	}
	if part := line.read(now-step, now, nil); len(part) != 2 {
		t.Errorf("the last two samples are %v", part)
	}
}

// TestGatherKeepsCountersOfEndedNodes: the cluster's counters do not fall when a node goes, nor do they
// rise when it comes back; its gauges go with it.
func TestGatherKeepsCountersOfEndedNodes(t *testing.T) {
	t.Parallel()
	s, a, b := New(Config{Prefix: "forge"}), uuid.New(), uuid.New()
	round := func(seconds int, aliveB bool, snapshots ...metrics.Snapshot) string {
		at := begin.Add(time.Duration(seconds) * time.Second)
		for _, snapshot := range snapshots {
			snapshot.At = at
			s.Append(snapshot)
		}
		s.Complete(at, []string{"r"}, []Node{{ID: a, Name: "a", Alive: true}, {ID: b, Name: "b", Alive: aliveB}})
		families, err := s.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, f := range families {
			if !strings.Contains(f.GetName(), "node_up") && !strings.Contains(f.GetName(), "node_reporting") {
				if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
					t.Fatal(err)
				}
			}
		}
		return text.String()
	}
	of := func(id uuid.UUID, leads, terms float64) metrics.Snapshot {
		return metrics.Snapshot{Node: id, Series: []metrics.Series{
			gauge("forge_leader_is_leader", leads, "role", "r"), counter("forge_leader_terms_total", terms, "role", "r"),
			gauge("forge_cluster_nodes", 2, "status", "active"),
		}}
	}
	text := func(leads, terms string) string {
		return "# TYPE forge_cluster_nodes gauge\nforge_cluster_nodes{status=\"active\"} 2\n" +
			"# TYPE forge_leader_is_leader gauge\nforge_leader_is_leader 0\nforge_leader_is_leader{role=\"r\"} " + leads +
			"\n# TYPE forge_leader_terms_total counter\nforge_leader_terms_total{role=\"r\"} " + terms + "\n"
	}
	for i, step := range []struct{ got, want string }{
		{round(0, true, of(a, 0, 3), of(b, 1, 4)), text("1", "7")},
		{round(10, false, of(a, 0, 3)), text("0", "7")},
		{round(20, false, of(a, 1, 4)), text("1", "8")},
		{round(30, true, of(a, 1, 4), of(b, 0, 5)), text("1", "9")},
		{round(40, false, of(a, 1, 4)), text("1", "9")},
		{round(50, true, of(a, 1, 4), of(b, 0, 5)), text("1", "9")},
		{round(60, true, of(a, 1, 4), of(b, 0, 6)), text("1", "10")},
		{round(70, false, of(a, 1, 4)), text("1", "10")},
	} {
		if step.got != step.want {
			t.Errorf("step %d is\n%s\nbut should be\n%s", i, step.got, step.want)
		}
	}
}

// BenchmarkQuery evaluates over 10,000 series with an hour of samples.
func BenchmarkQuery(b *testing.B) {
	s, id := New(Config{}), uuid.New()
	at := begin
	roles := make([]string, 10_000)
	for i := range roles {
		roles[i] = "role-" + uuid.NewString()
	}
	for i := range 360 {
		at = begin.Add(time.Duration(i) * 10 * time.Second)
		snapshot := metrics.Snapshot{Node: id, NodeName: "a", At: at}
		for n, role := range roles {
			snapshot.Series = append(snapshot.Series, counter("tenure_leader_failovers_total", float64(i*n)+rand.Float64(), "role", role))
		}
		s.Append(snapshot)
	}
	for _, query := range []string{
		"sum(tenure_leader_failovers_total) == 0", "rate(forge_leader_failovers_total[5m]) > 1e9",
		`sum(tenure_leader_failovers_total{role="x"}) == 0`,
	} {
		b.Run(query, func(b *testing.B) {
			for b.Loop() {
				evaluate(b, s, query, at)
			}
		})
	}
}
