package dashboard

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"sort"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/history"
)

// getGraphs returns the graphs of the cluster, or of a node.
func (d *Dashboard) getGraphs(w http.ResponseWriter, r *http.Request) {
	name, node := r.URL.Query().Get("range"), r.URL.Query().Get("node")
	within, ok := graphRanges[name]
	id, _ := uuid.Parse(node) // otherwise the zero id, which no node has
	switch _, known := d.snapshot.nodeDetail(id); {
	case d.samples == nil:
		refuse(w, http.StatusNotFound, "this dashboard has no database connection for samples")
		return
	case !ok, node != "" && within.daily:
		refuse(w, http.StatusBadRequest, "the range must be 1h, 6h, 24h, 7d or 30d, and of a node at most 24h")
		return
	case node != "" && !known:
		refuse(w, http.StatusNotFound, "no node with this id is known")
		return
	}
	record, err := d.graphs.get(r.Context(), name+" "+id.String(), func(ctx context.Context) (any, error) {
		return d.readGraphs(ctx, within, id)
	})
	if err != nil {
		d.log.Warn("the dashboard cannot read the samples", "error", err)
		refuse(w, http.StatusServiceUnavailable, "the database is not responding")
		return
	}
	answer(w, http.StatusOK, record)
}

// readGraphs returns the graphs of a node, or of the cluster for the zero id.
func (d *Dashboard) readGraphs(ctx context.Context, within graphRange, id uuid.UUID) (graphsRecord, error) {
	now := d.snapshot.clockNow()
	record := graphsRecord{From: now.Add(-within.length).UnixMilli(), To: now.UnixMilli(), Graphs: []graphRecord{}}
	var err error
	if within.daily {
		err = d.samples.days(ctx, within, &record)
	} else if err = d.samples.refresh(ctx, now); err == nil {
		d.samples.graphs(within, id, now, d.snapshot.pastTimes(), &record)
	}
	var refused *pgconn.PgError
	if errors.Is(err, dberr.ErrPrivilege) || errors.As(err, &refused) && refused.Code == insufficientPrivilege {
		record.Problem, err = noPrivilege, nil
	}
	return record, err
}

// graphs fills a record with the samples in a range.
func (s *samples) graphs(within graphRange, id uuid.UUID, now time.Time, past pastTimes, record *graphsRecord) {
	from, of := now.Add(-within.length), clusterGraphs
	newest, problem := s.newest, noSamples
	if id != uuid.Nil {
		newest, problem, of = time.Time{}, noNodeSamples, nodeGraphs
		if node := s.nodes[id]; node != nil {
			newest = node.last()
		}
	}
	if !newest.IsZero() {
		at := newest.UnixMilli()
		record.Newest = &at
	}
	if newest.Before(from) {
		if record.Problem = problem; s.unreadable {
			record.Problem = newerSamples
		}
		return
	}
	for _, g := range of {
		graph := graphRecord{Name: g.name, Unit: g.unit, Series: []seriesRecord{}}
		for _, l := range g.lines {
			var points [][2]any
			switch {
			case id != uuid.Nil:
				points = s.nodes[id].line(l.figure, from, now, within.step)
			case l.how == increase:
				graph.Step = (within.length / barCount).Milliseconds()
				points = past.failovers.counted(from, now, within.length/barCount)
			case l.how == present:
				points = past.led.at(from, now, max(within.step, within.length/mostClusterPoints))
			default:
				points = s.clusterLine(l.figure, from, now, max(within.step, within.length/mostClusterPoints))
			}
			graph.Series = append(graph.Series, seriesRecord{l.name, points})
		}
		record.Graphs = append(record.Graphs, graph)
	}
}

// line returns a figure of a node: at most one point for each step. Where samples are
// missing, there is a point without a value.
func (n *sampledNode) line(f figure, from, now time.Time, step time.Duration) [][2]any {
	points := [][2]any{}
	var last time.Time // the step of the point before
	broken := false
	for i, one := range n.samples {
		if one.at.Before(from) {
			continue
		}
		value := float64(one.figures[f])
		if at := one.at.Truncate(step); !at.Equal(last) || broken {
			if !math.IsNaN(value) {
				points = append(points, point(one.at, value))
			}
			last = at
		}
		if broken = math.IsNaN(value) || i+1 < len(n.samples) && !n.continues(i, now); broken {
			points = append(points, [2]any{one.at.UnixMilli() + 1, nil})
		}
	}
	return points
}

// clusterLine returns a figure of the cluster at regular times: the value of the latest sample
// of any node.
func (s *samples) clusterLine(f figure, from, now time.Time, step time.Duration) [][2]any {
	points := [][2]any{}
	for t := from.Truncate(step).Add(step); !t.After(now); t = t.Add(step) {
		var latest time.Time
		value := math.NaN()
		for _, node := range s.nodes {
			one, ok := node.at(t, now)
			v := float64(one.figures[f])
			if !ok || math.IsNaN(v) {
				continue
			}
			if one.at.After(latest) {
				latest, value = one.at, v
			}
		}
		if math.IsNaN(value) {
			points = append(points, [2]any{t.UnixMilli(), nil})
		} else {
			points = append(points, point(t, value))
		}
	}
	return points
}

// failoverTimes are the times of the failovers in memory, the oldest first. Failovers
// before since are unknown.
type failoverTimes struct {
	times []time.Time
	since time.Time // zero if all are known
}

// counted counts failovers in steps of a range. The point of a step is its beginning.
func (f failoverTimes) counted(from, now time.Time, step time.Duration) [][2]any {
	points := [][2]any{}
	i, _ := slices.BinarySearchFunc(f.times, from, time.Time.Compare)
	for t := from.Truncate(step).Add(step); t.Before(now); t = t.Add(step) {
		for i < len(f.times) && f.times[i].Before(t) {
			i++
		}
		n := 0
		for i < len(f.times) && f.times[i].Before(t.Add(step)) {
			i++
			n++
		}
		if t.Before(f.since) {
			points = append(points, [2]any{t.UnixMilli(), nil})
		} else {
			points = append(points, point(t, float64(n)))
		}
	}
	return points
}

// ledTimes are when roles had a leader, by their terms. Terms with an end before since
// are unknown.
type ledTimes struct {
	began, ended []time.Time // ordered
	since        time.Time   // zero if all are known
}

// at counts the roles with a leader at regular times.
func (l ledTimes) at(from, now time.Time, step time.Duration) [][2]any {
	points := [][2]any{}
	until := func(times []time.Time, t time.Time) int {
		return sort.Search(len(times), func(i int) bool { return times[i].After(t) })
	}
	for t := from.Truncate(step).Add(step); !t.After(now); t = t.Add(step) {
		if t.Before(l.since) {
			points = append(points, [2]any{t.UnixMilli(), nil})
		} else {
			points = append(points, point(t, float64(until(l.began, t)-until(l.ended, t))))
		}
	}
	return points
}

// pastTimes are the figures of graphs that no sample has.
type pastTimes struct {
	failovers failoverTimes
	led       ledTimes
}

func (p *snapshot) pastTimes() pastTimes {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return pastTimes{p.failoverTimes(), p.ledTimes()}
}

// ledTimes returns when roles had a leader. Under the mutex.
func (p *snapshot) ledTimes() (known ledTimes) {
	add := func(t history.Term) {
		ended := t.Ended
		if r := p.roles[t.Role]; ended.IsZero() && r != nil && r.state == vacant { // no other node has recorded the end yet
			m, _ := p.member(t.Node)
			ended = m.LastHeartbeat
		}
		if ended.IsZero() {
			known.began = append(known.began, t.Began)
		} else if ended.After(t.Began) {
			known.began, known.ended = append(known.began, t.Began), append(known.ended, ended)
		}
	}
	for _, t := range p.past.terms {
		add(t)
	}
	for _, r := range p.roles { // its last term may be older than all that is kept
		if _, ok := p.past.termAt[termKey{r.term.Role, r.term.Term}]; !ok {
			add(r.term)
		}
	}
	slices.SortFunc(known.began, time.Time.Compare)
	slices.SortFunc(known.ended, time.Time.Compare)
	known.since = p.past.oldest
	return known
}

// failoverTimes returns when the failovers in memory were over. Under the mutex.
func (p *snapshot) failoverTimes() (known failoverTimes) {
	for _, f := range p.failovers {
		if f.Kind == kindFailover {
			known.times = append(known.times, f.At)
		}
	}
	if len(p.failovers) >= maxTerms {
		known.since = p.failovers[0].At
	}
	return known
}
