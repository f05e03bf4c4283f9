package series

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/metrics"
)

// TestLimitDropsSeriesAboveIt: series beyond the limit are left out and reported; series that are too
// old make room.
func TestLimitDropsSeriesAboveIt(t *testing.T) {
	t.Parallel()
	s, id := New(Config{MaxSeries: 2}), uuid.New()
	s.Append(metrics.Snapshot{Node: id, NodeName: "a", At: begin, Series: []metrics.Series{gauge("a", 1), gauge("b", 1), gauge("c", 1)}})
	if left := s.Complete(begin, nil, nil); left != 1 || s.Len() != 2 {
		t.Errorf("%d series were left out, %d are kept", left, s.Len())
	}
	s.Complete(begin.Add(Retention+time.Minute), nil, nil)
	if s.Len() != 0 || len(s.nodes) != 0 || len(s.named) != 0 || s.ended.Len() != 0 {
		t.Errorf("after a day without samples there are %d series of %d nodes", s.Len(), len(s.nodes))
	}
}

// crashes is a process that is started again each minute, as a new node, next to
// one that keeps running. Each counts one thing, and has a gauge.
type crashes struct {
	steady  uuid.UUID
	started []uuid.UUID
}

func (c *crashes) sample(id uuid.UUID, at time.Time, count float64) metrics.Snapshot {
	return metrics.Snapshot{Node: id, NodeName: "n", At: at, Series: []metrics.Series{
		counter("tenure_leader_terms_total", count, "role", "r"), gauge("tenure_leader_term", count, "role", "r"),
	}}
}

// minute starts the process again, and returns the samples of both.
func (c *crashes) minute(at time.Time) []metrics.Snapshot {
	c.started = append(c.started, uuid.New())
	return []metrics.Snapshot{c.sample(c.steady, at, float64(len(c.started))), c.sample(c.started[len(c.started)-1], at, 1)}
}

func (c *crashes) nodes() []Node {
	return []Node{{ID: c.steady, Name: "n", Alive: true}, {ID: c.started[len(c.started)-1], Name: "n", Alive: true}}
}

func wantTerms(t *testing.T, s *Store, want float64) {
	t.Helper()
	families, err := s.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "tenure_leader_terms_total" {
			if got := f.GetMetric()[0].GetCounter().GetValue(); got != want {
				t.Errorf("the terms of all are %v; want %v", got, want)
			}
			return
		}
	}
	t.Error("there are no terms")
}

// wantSound checks that every index of a store has the same series.
func wantSound(t *testing.T, s *Store) {
	t.Helper()
	named, over := 0, 0
	for name, all := range s.named {
		for i, one := range all {
			named++
			if s.series[one.key] != one || one.inNamed != i || one.labels.Get("__name__") != name {
				t.Fatalf("%s is at the wrong place", one.labels)
			}
		}
	}
	for _, n := range s.nodes {
		for i, one := range n.series {
			if s.series[one.key] != one || one.inNode != i || one.node != n {
				t.Fatalf("%s is at the wrong place of its node", one.labels)
			}
		}
	}
	for _, one := range s.series {
		if one.over() {
			over++
		}
		if one.over() != (one.inEnded != nil) {
			t.Fatalf("%s is over, or not: %v", one.labels, one.over())
		}
	}
	if named != len(s.series) || over != s.ended.Len() {
		t.Fatalf("%d series have %d names; %d are over, and listed %d", len(s.series), named, over, s.ended.Len())
	}
}

// TestEndedProcessesMakeRoom: a process that is started again and again fills no store: what it
// left behind makes room, the oldest first, and the cluster's counters stay right,
// also when one comes back whose series made room.
func TestEndedProcessesMakeRoom(t *testing.T) {
	t.Parallel()
	const most = 60
	s, c := New(Config{MaxSeries: most}), &crashes{steady: uuid.New()}
	at := begin
	for i := range 300 {
		at = begin.Add(time.Duration(i) * time.Minute)
		for _, snapshot := range c.minute(at) {
			s.Append(snapshot)
		}
		if left := s.Complete(at, []string{"r"}, c.nodes()); left > 0 {
			t.Fatalf("after %d minutes %d series are left out", i, left)
		}
		wantSound(t, s)
		wantTerms(t, s, float64(2*(i+1)))
	}
	if s.Len() > most {
		t.Errorf("there are %d series", s.Len())
	}
	wantAnswer(t, s, "sum(tenure_leader_terms_total)", at, "{} => 301")
	recent := evaluate(t, s, "count(sum by (node) (count_over_time(tenure_leader_terms_total[10m])))", at)
	if recent[0] != "{} => 11" && recent[0] != "{} => 12" {
		t.Errorf("of the last ten minutes there are %q processes", recent)
	}
	s.Append(c.sample(c.started[0], at.Add(time.Second), 5)) // it was away
	wantTerms(t, s, 300+299+5)
	s.Complete(at.Add(time.Second), []string{"r"}, c.nodes())
	wantTerms(t, s, 300+299+5)
	wantSound(t, s)
}

// TestWholeDayFitsWithinTheLimit: a leader that reads the samples of a whole day in one round keeps
// those of the living nodes.
func TestWholeDayFitsWithinTheLimit(t *testing.T) {
	t.Parallel()
	s, c := New(Config{MaxSeries: 200}), &crashes{steady: uuid.New()}
	const minutes = 24 * 60
	at := begin
	for i := range minutes {
		at = begin.Add(time.Duration(i) * time.Minute)
		for _, snapshot := range c.minute(at) {
			s.Append(snapshot)
		}
	}
	if left := s.Complete(at, []string{"r"}, c.nodes()); left > 0 {
		t.Errorf("%d series are left out", left)
	}
	wantSound(t, s)
	wantTerms(t, s, 2*minutes)
	wantAnswer(t, s, "sum(tenure_leader_terms_total)", at, fmt.Sprintf("{} => %d", minutes+1))
}

// TestReturningNodeContinuesToCount: a node was silent so long that its series made room; it continues
// to count where it stopped, however often its samples are read.
func TestReturningNodeContinuesToCount(t *testing.T) {
	t.Parallel()
	s, c := New(Config{MaxSeries: 20}), &crashes{steady: uuid.New()}
	for i := range 30 {
		at := begin.Add(time.Duration(i) * time.Minute)
		for range 3 { // from the start, as a new term does
			for _, id := range c.started {
				s.Append(c.sample(id, begin, 1))
			}
		}
		for _, snapshot := range c.minute(at) {
			s.Append(snapshot)
		}
		s.Complete(at, nil, c.nodes())
		wantTerms(t, s, float64(2*(i+1)))
	}
	wantSound(t, s)
}

// TestOldestSilentNodeMakesRoom: of nodes that are found silent in one round, the one with the
// newest sample keeps its series for longest.
func TestOldestSilentNodeMakesRoom(t *testing.T) {
	t.Parallel()
	const count = 20
	s, c := New(Config{MaxSeries: 2 * count}), &crashes{}
	for i := range count {
		s.Append(c.sample(uuid.New(), begin.Add(time.Duration(i)*time.Second), float64(i)))
	}
	at := begin.Add(time.Hour)
	s.Complete(at, nil, nil)
	for range count / 2 {
		s.Append(c.sample(uuid.New(), at, 0))
	}
	wantAnswer(t, s, "min(min_over_time(tenure_leader_term{node_name='n'}[2h]) > 0)", at, fmt.Sprintf("{} => %d", count/2))
	wantSound(t, s)
}

// BenchmarkMakeRoom is a sample of 300 series of a new process, where the store is
// full of those that ended.
func BenchmarkMakeRoom(b *testing.B) {
	for _, most := range []int{1000, 50_000} {
		b.Run(fmt.Sprint(most), func(b *testing.B) {
			s, at := New(Config{MaxSeries: most}), begin
			sample := func() {
				at = at.Add(time.Second)
				snapshot := metrics.Snapshot{Node: uuid.New(), NodeName: "n", At: at}
				for i := range 300 {
					snapshot.Series = append(snapshot.Series, counter("tenure_x_total", 1, "i", fmt.Sprint(i)))
				}
				s.Append(snapshot)
				s.mu.Lock()
				s.silenceLocked([]*node{s.nodes[snapshot.Node]}, at.UnixMilli())
				s.mu.Unlock()
			}
			for s.Len() < most {
				sample()
			}
			for b.Loop() {
				sample()
			}
		})
	}
}
