package dashboard

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/incident"
)

// leastCases is of how many failovers a share is shown.
const leastCases = 20

// maxPoints is how many are plotted one by one; more are combined on a grid.
const (
	maxPoints  = 1000
	columns    = 160
	perTenfold = 8
)

// failoverOf returns the change of leader from one term of a role, possibly unknown, to
// the next.
func failoverOf(before, t history.Term) failoverRecord {
	kind := kindFailover
	if incident.Planned(before) {
		kind = kindMove
	}
	return failoverRecord{
		gap: gapBefore(before.Reason, t), Kind: kind,
		At: t.Began, Role: t.Role, Term: t.Term, NodeName: t.NodeName, Previous: before.NodeName, Reason: string(before.Reason),
	}
}

// failoversOf returns the failovers of a role, or all, newest first, and the current
// time by the clock of their times.
func (p *snapshot) failoversOf(role string) ([]failoverRecord, time.Time) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	records := make([]failoverRecord, 0, len(p.failovers))
	for _, r := range slices.Backward(p.failovers) {
		if role == "" || r.Role == role {
			records = append(records, p.withIncident(r))
		}
	}
	return records, p.clock()
}

// overallLife is how long a summary is valid: it counts the last 24 hours.
const overallLife = 10 * time.Second

// allFailovers summarizes all, without rows.
func (p *snapshot) allFailovers() failoversRecord {
	number := p.eventsSeen()
	p.overall.mu.Lock()
	defer p.overall.mu.Unlock()
	if p.overall.number != number || time.Since(p.overall.at) >= overallLife {
		all, now := p.failoversOf("")
		p.overall.number, p.overall.at, p.overall.record = number, time.Now(), summary(all, now)
		p.overall.record.Points = points(all)
	}
	summed := p.overall.record
	summed.Outages = p.outages()
	return summed
}

// outages is how many outages are known.
func (p *snapshot) outages() int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.found.outages)
}

// lastFailovers returns a page of the matching changes of leaders and outages, newest
// first, and their number.
func (p *snapshot) lastFailovers(matches func(failoverRecord) bool, offset, limit int) (records []failoverRecord, total int) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	records = []failoverRecord{}
	failover, outage := len(p.failovers)-1, len(p.found.outages)-1
	for failover >= 0 || outage >= 0 {
		var r failoverRecord
		if outage >= 0 && (failover < 0 || p.found.outages[outage].At.After(p.failovers[failover].At)) {
			r = p.found.outages[outage]
			outage--
		} else {
			r = p.failovers[failover]
			failover--
		}
		if !matches(r) {
			continue
		}
		if total++; total > offset && len(records) < limit {
			records = append(records, p.withIncident(r))
		}
	}
	return records, total
}

// failoverFilter returns a filter for changes of leader by kind and by the name of a role
// or a node.
func failoverFilter(kind, wanted string) func(failoverRecord) bool {
	return func(r failoverRecord) bool {
		return (kind == "" || r.Kind == kind) && (wanted == "" || contains(r.Role, wanted) || contains(r.NodeName, wanted) || contains(r.Previous, wanted))
	}
}

// withIncident returns a failover with the id of its incident. Under the mutex.
func (p *snapshot) withIncident(r failoverRecord) failoverRecord {
	if n, ok := p.found.began[termKey{r.Role, r.Term}]; ok {
		r.Incident = p.found.records[n].ID
	}
	return r
}

// quantile returns the case at the nearest rank of a nonempty sorted list.
func quantile(sorted []gap, percent int) *gap {
	return &sorted[max(1, (percent*len(sorted)+99)/100)-1]
}

// summary returns for how long roles were without a leader.
func summary(all []failoverRecord, now time.Time) failoversRecord {
	s := failoversRecord{Rows: []failoverRecord{}}
	if len(all) > 0 {
		s.Since = &all[len(all)-1].At
	}
	var cases []gap
	for _, r := range all {
		if r.Kind == kindMove {
			s.Moves++
			continue
		}
		s.Failovers++
		cases = append(cases, r.gap)
		if now.Sub(r.At) < 24*time.Hour {
			s.Day++
		}
	}
	if len(cases) == 0 {
		return s
	}
	slices.SortFunc(cases, func(a, b gap) int { return cmp.Compare(*a.Without, *b.Without) })
	s.Median, s.Max = quantile(cases, 50), quantile(cases, 100)
	if len(cases) >= leastCases {
		s.P95, s.P99 = quantile(cases, 95), quantile(cases, 99)
	}
	return s
}

// points returns the points of the plot: failovers.
func points(all []failoverRecord) [][3]float64 {
	all = slices.DeleteFunc(slices.Clone(all), func(r failoverRecord) bool { return r.Kind == kindMove })
	plotted := make([][3]float64, 0, min(len(all), maxPoints))
	if len(all) <= maxPoints {
		for _, r := range all {
			plotted = append(plotted, [3]float64{float64(r.At.UnixMilli()), *r.Without, 1})
		}
		return plotted
	}
	newest, oldest := all[0].At, all[len(all)-1].At
	width := max(newest.Sub(oldest)/columns, time.Millisecond)
	cells := map[[2]int]int{} // index in plotted
	for _, r := range all {
		cell := [2]int{int(r.At.Sub(oldest) / width), int(math.Round(math.Log10(max(*r.Without, 1e-4)) * perTenfold))}
		i, ok := cells[cell]
		if !ok {
			i = len(plotted)
			cells[cell] = i
			plotted = append(plotted, [3]float64{float64(r.At.UnixMilli()), *r.Without, 0})
		}
		plotted[i][2]++
	}
	return plotted
}
