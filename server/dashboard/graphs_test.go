package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/sampletest"
)

// pointsOf returns the values of a line, nil where samples are missing.
func pointsOf(t *testing.T, record graphsRecord, graph, series string) (values []any, times []time.Time) {
	t.Helper()
	for _, g := range record.Graphs {
		for _, s := range g.Series {
			if g.Name != graph || s.Name != series {
				continue
			}
			for _, p := range s.Points {
				values = append(values, p[1])
				times = append(times, time.UnixMilli(int64(p[0].(float64))))
			}
		}
	}
	return values, times
}

// again makes the next request read anew.
//
// Set by hand: a request reads anew after a pause, for which no test should wait.
func (w *world) again() {
	w.board.graphs.mu.Lock()
	defer w.board.graphs.mu.Unlock()
	clear(w.board.graphs.results)
	w.board.samples.readAt = time.Time{}
}

func (w *world) withSamples() { w.Migrate("samples") }

// Without samples, the answer says what to do; it has no graph that looks like zero.
func TestGraphsWithoutSamplesStateWhatToDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	node, _ := w.node("api-1", "scheduler")
	w.led("scheduler", "api-1")
	check := func(query, words string) {
		t.Helper()
		w.again()
		record := get[graphsRecord](w, "/api/graphs?"+query)
		if len(record.Graphs) > 0 || record.Newest != nil || !strings.Contains(record.Problem, words) {
			t.Errorf("%s: %+v; want a problem with %q", query, record, words)
		}
	}
	for _, tables := range []string{"no", "empty"} {
		if tables == "empty" {
			w.withSamples()
		}
		check("range=1h", "--listen")
		check("range=30d", "log-compactor")
		check("range=24h&node="+node.ID().String(), "metrics.NewReporter")
	}
	w.exec(`INSERT INTO {samples} (node_id, node_name, format, body) VALUES ($1, 'api-1', 99, '')`, node.ID())
	check("range=1h", "newer release")
	w.exec(`DELETE FROM {samples}`)
	w.board.samples.unreadable = false
	sampletest.Insert(w.Installation, node.ID(), time.Now().Add(-2*time.Hour), map[string]float64{"tenure_node_jobs": 1})
	w.again()
	if record := get[graphsRecord](w, "/api/graphs?range=1h&node="+node.ID().String()); record.Newest == nil || len(record.Graphs) > 0 || record.Problem == "" {
		t.Errorf("with an older sample only: %+v", record)
	}
}

// Values that are not in the list of ranges, and nodes that do not exist, are refused.
func TestGraphsRefuseWhatIsUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	node, _ := w.node("api-1", "scheduler")
	w.led("scheduler", "api-1")
	for query, status := range map[string]int{
		"": 400, "range=": 400, "range=2h": 400, "range=1h&node=x": 404, "range=1h&node=" + uuid.Nil.String(): 404, "range=7d&node=" + node.ID().String(): 400,
		"range=1h&node=" + uuid.NewString(): 404, "range=1h&node=" + node.ID().String(): 200, "range=30d": 200,
	} {
		if response, text := w.request(http.MethodGet, "/api/graphs?"+query, ""); response.StatusCode != status {
			t.Errorf("%q: %s %s; want %d", query, response.Status, text, status)
		}
	}
	if n := len(w.board.graphs.results); n != 2 {
		t.Errorf("%d results are kept, want those of the 2 valid requests", n)
	}
	w.board.samples = nil // as without a database
	if response, text := w.request(http.MethodGet, "/api/graphs?range=1h", ""); response.StatusCode != http.StatusNotFound || !strings.Contains(text, "no database connection") {
		t.Errorf("without a database: %s %s", response.Status, text)
	}
}

// A user without the privilege gets the reason instead of graphs.
func TestGraphsStateMissingPrivilege(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{}, (*world).withSamples)
	user := strings.ToLower(w.schema) + "_u"
	w.exec(`CREATE ROLE ` + user + ` LOGIN; GRANT USAGE ON SCHEMA "` + w.schema + `" TO ` + user + `; GRANT SELECT ON {migrations} TO ` + user)
	w.board.samples.database = pgtest.Pool(t, w.Server.DSNFor(user, "postgres"))
	t.Cleanup(func() {
		if _, err := w.Installation.Pool.Exec(context.Background(), "DROP OWNED BY "+user+"; DROP ROLE "+user); err != nil {
			t.Error(err)
		}
	})
	for _, name := range []string{"1h", "7d"} {
		if record := get[graphsRecord](w, "/api/graphs?range="+name); record.Problem != noPrivilege {
			t.Errorf("%s: %+v", name, record)
		}
	}
}

// The line of a node has its stored values, and a point without a value where samples are
// missing. A point that arrives later, and one that is read twice, is there once.
func TestNodeGraphBreaksWhereSamplesAreMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{}, (*world).withSamples)
	node, _ := w.node("api-1", "scheduler")
	w.led("scheduler", "api-1")
	path := "/api/graphs?range=1h&node=" + node.ID().String()
	now := time.Now()
	for minutes := 40; minutes > 0; minutes-- {
		if minutes > 20 && minutes < 30 { // the node wrote none
			continue
		}
		sampletest.Insert(w.Installation, node.ID(), now.Add(-time.Duration(minutes)*time.Minute), map[string]float64{
			"tenure_node_cpu_usage_ratio": float64(minutes) / 100, "tenure_node_jobs": 3, "other_node_jobs": 7,
		})
	}
	record := get[graphsRecord](w, path)
	values, times := pointsOf(t, record, "load", "cpu")
	if len(values) != 32 || values[0] != 0.4 || values[30] != 0.02 || record.Problem != "" {
		t.Fatalf("the values are %v (%s)", values, record.Problem)
	}
	for i, value := range values {
		if missing := value == nil; missing != (i == 11) {
			t.Errorf("the point %d at %v is %v; only that after 30 minutes is missing", i, times[i], value)
		}
	}
	if memory, _ := pointsOf(t, record, "load", "memory"); countKnown(memory) != 0 {
		t.Errorf("the samples have no memory: %v", memory)
	}
	if jobs, _ := pointsOf(t, record, "work", "jobs"); jobs[0] != 3.0 {
		t.Errorf("the jobs are %v", jobs)
	}
	if at := time.UnixMilli(*record.Newest); at.Sub(now.Add(-time.Minute)).Abs() > time.Second {
		t.Errorf("the latest sample is of %v", at)
	}
	w.board.samples.position = "" // all are read again
	sampletest.Insert(w.Installation, node.ID(), now.Add(-35*time.Minute-30*time.Second), map[string]float64{"tenure_node_cpu_usage_ratio": 0.99})
	sampletest.Insert(w.Installation, node.ID(), now.Add(time.Hour), map[string]float64{"tenure_node_cpu_usage_ratio": 1})
	w.again()
	if values, _ := pointsOf(t, get[graphsRecord](w, path), "load", "cpu"); countKnown(values) < 31 || countKnown(values) > 32 {
		t.Errorf("then the values are %v", values)
	}
}

func countKnown(values []any) (n int) {
	for _, v := range values {
		if v != nil {
			n++
		}
	}
	return n
}

// Figures of the cluster come from the latest sample of any node, and led roles from the terms.
// A node that stopped no longer counts.
func TestClusterGraphsCombineNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{MetricsPrefix: "forge"}, (*world).withSamples)
	w.node("api-1", "scheduler")
	w.led("scheduler", "api-1")
	one, other := uuid.New(), uuid.New()
	// The points are at whole multiples of 20 s, and so never between the samples of the two.
	now := time.Now().Truncate(20 * time.Second).Add(-10 * time.Second)
	for minutes := 50; minutes >= 0; minutes-- {
		at := now.Add(-time.Duration(minutes) * time.Minute)
		sampletest.Insert(w.Installation, one, at, map[string]float64{"forge_leader_roles_led": 2, "forge_cluster_nodes active": 2, "forge_cluster_nodes dead": 1, "tenure_cluster_jobs": 9})
		if minutes >= 20 {
			sampletest.Insert(w.Installation, other, at.Add(time.Second), map[string]float64{"forge_leader_roles_led": 3, "forge_cluster_nodes active": 4})
		}
	}
	record := get[graphsRecord](w, "/api/graphs?range=1h")
	active, times := pointsOf(t, record, "nodes", "active")
	if len(active) < 100 || len(active) > mostClusterPoints+1 {
		t.Fatalf("%d points", len(active))
	}
	// The samples are not from nodes that lead a role.
	if led, _ := pointsOf(t, record, "roles", "led"); len(led) != len(active) || led[0] != 0.0 || led[len(led)-1].(float64) > 1 {
		t.Errorf("%v roles have a leader, want none and 1 at the end", led)
	}
	for i, at := range times {
		age := now.Sub(at)
		want := any(4.0)
		switch {
		case age > 50*time.Minute:
			want = nil
		case age < 18*time.Minute:
			want = 2.0
		case age > 49*time.Minute || age < 22*time.Minute: // the samples of the two are a second apart
			continue
		}
		if active[i] != want {
			t.Fatalf("%v ago, %v nodes are active, want %v", age, active[i], want)
		}
	}
	if jobs, _ := pointsOf(t, record, "work", "jobs"); countKnown(jobs) != 0 {
		t.Errorf("metrics with another prefix are shown: %v", jobs)
	}
	failovers, _ := pointsOf(t, record, "failovers", "failovers")
	if len(failovers) != barCount || failovers[0] != 0.0 {
		t.Errorf("the failovers are %v", failovers)
	}
}

// Failovers are counted once each, in the step in which they were over; those that are no
// longer in memory are unknown, not zero.
func TestFailoversAreCountedInSteps(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 12, 30, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return now.Add(-time.Duration(minutes) * time.Minute) }
	known := failoverTimes{times: []time.Time{at(300), at(50), at(50), at(40), at(1)}}
	if got := fmt.Sprint(values(known.counted(at(60), now, 10*time.Minute))); got != "[2 1 0 0 1]" {
		t.Errorf("the failovers are %s", got)
	}
	known.since = at(45)
	if got := fmt.Sprint(values(known.counted(at(60), now, 10*time.Minute))); got != "[<nil> 1 0 0 1]" {
		t.Errorf("with the oldest gone, the failovers are %s", got)
	}
}

func values(points [][2]any) (all []any) {
	for _, p := range points {
		all = append(all, p[1])
	}
	return all
}

// Ranges of days are the daily totals: means, increases and maxima. A missing day is a gap.
func TestGraphsOfDaysShowTotals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{}, (*world).withSamples)
	w.exec(`INSERT INTO {sample_days} (day, metric, digest, labels, kind, samples, total, least, greatest)
		SELECT (now() AT TIME ZONE 'UTC')::date - n, metric, decode(md5(labels), 'hex'), labels::jsonb, kind, 4, total, 0, greatest
		FROM unnest('{1,2,4,40}'::int[]) n, (VALUES
			('tenure_cluster_mean_load', '{}', 'gauge', 1.0, 0.5), ('tenure_cluster_highest_load', '{}', 'gauge', 2.0, 0.9),
			('tenure_cluster_nodes', '{"status": "active"}', 'gauge', 12, 4),
			('tenure_leader_failovers_total', '{"role": "a"}', 'counter', 3, NULL), ('tenure_leader_failovers_total', '{"role": "b"}', 'counter', 2, NULL)
		) AS v (metric, labels, kind, total, greatest)`)
	record := get[graphsRecord](w, "/api/graphs?range=7d")
	for line, want := range map[[2]string]string{
		{"load", "mean"}: "[0.25 <nil> 0.25 0.25]", {"load", "highest"}: "[0.9 <nil> 0.9 0.9]", {"nodes", "active"}: "[3 <nil> 3 3]",
		{"failovers", "failovers"}: "[5 <nil> 5 5]", {"roles", "led"}: "[]", {"work", "jobs"}: "[]",
	} {
		if got, _ := pointsOf(t, record, line[0], line[1]); fmt.Sprint(got) != want {
			t.Errorf("%v: %v, want %s", line, got, want)
		}
	}
	if _, times := pointsOf(t, record, "load", "mean"); times[0].UnixMilli() < record.From || !times[0].Equal(times[0].Truncate(24*time.Hour)) {
		t.Errorf("the first day is %v, and the range begins at %v", times[0], time.UnixMilli(record.From))
	}
}

// 100 viewers of the graphs of the cluster and of several nodes cause one read of the
// samples.
func TestManyViewersReadSamplesOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{}, (*world).withSamples)
	var paths []string
	for i := range 4 {
		node, _ := w.node(fmt.Sprintf("api-%d", i+1), "scheduler")
		paths = append(paths, "/api/graphs?range=24h&node="+node.ID().String())
		sampletest.Insert(w.Installation, node.ID(), time.Now(), map[string]float64{"tenure_node_jobs": 1})
	}
	w.await("all nodes are known", func() bool { return len(w.board.snapshot.now().Nodes) == 4 })
	paths = append(paths, "/api/graphs?range=1h", "/api/graphs?range=6h")
	began := time.Now()
	var group sync.WaitGroup
	for i := range 100 {
		group.Go(func() {
			answer := httptest.NewRecorder()
			w.board.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, paths[i%len(paths)], http.NoBody))
			if answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), `"newest":1`) {
				t.Errorf("%d %s", answer.Code, answer.Body)
			}
		})
	}
	group.Wait()
	if reads, most := w.sampleReads.Load(), 1+int64(time.Since(began)/sampleAge); reads < 1 || reads > most {
		t.Errorf("the samples were read %d times; want at most %d", reads, most)
	}
}

// The samples in memory are as many as are stored of their age, of a limited number of nodes.
func TestSamplesInMemoryAreBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 12, 30, 0, 0, time.UTC)
	s := &samples{nodes: map[uuid.UUID]*sampledNode{}}
	for i := range maxSampledNodes + 5 {
		node := &sampledNode{}
		for at := now.Add(-25 * time.Hour); !at.After(now.Add(-time.Duration(i) * time.Second)); at = at.Add(40 * time.Second) {
			node.samples = append(node.samples, sample{at: at, size: 1000})
		}
		s.nodes[uuid.UUID{byte(i >> 8), byte(i)}] = node
	}
	s.thin(now)
	if len(s.nodes) != maxSampledNodes || s.nodes[uuid.UUID{}] == nil {
		t.Errorf("%d nodes are kept", len(s.nodes))
	}
	// 18 h in steps of 5 minutes, then to 10 minutes ago in steps of a minute, and the rest.
	if n := len(s.nodes[uuid.UUID{}].samples); n < 570 || n > 590 {
		t.Errorf("%d samples of a node are kept", n)
	}
	if first := s.nodes[uuid.UUID{}].samples[0].at; now.Sub(first) > sampledFor {
		t.Errorf("the oldest is of %v", first)
	}
}
