package dashboard

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/exactly-one/tenure/history"
)

// failoverRecord is a change of leader: a vacancy, and the node that ended it.
type failoverRecord struct {
	Kind     string    `json:"kind,omitempty"` // outage, or empty
	At       time.Time `json:"at"`             // when the new term began, or an outage was over
	Role     string    `json:"role"`
	Term     int64     `json:"term"`
	NodeName string    `json:"node_name"`
	Previous string    `json:"previous"` // the previous leader, if known
	Reason   string    `json:"reason"`   // why its term ended, if known
	Vacant   float64   `json:"vacant_seconds"`
	Silent   *float64  `json:"silent_seconds"`  // since the last sign of life of the previous leader; null if unknown
	Roles    int       `json:"roles,omitempty"` // that an outage stopped
	Incident string    `json:"incident,omitempty"`
}

// kindOutage is the kind of a row for an outage of the database, which stops all roles.
const kindOutage = "outage"

// failoversRecord is the content of the page on failovers.
type failoversRecord struct {
	Total   int              `json:"total"`   // of those in memory
	Outages int              `json:"outages"` // further rows
	Day     int              `json:"day"`     // of the last 24 hours
	Since   *time.Time       `json:"since"`   // the oldest in memory
	Median  float64          `json:"median_seconds"`
	P95     float64          `json:"p95_seconds"`
	P99     float64          `json:"p99_seconds"`
	Max     float64          `json:"max_seconds"`
	Silent  silences         `json:"silent"`
	Points  [][3]float64     `json:"points"` // [at in ms, vacant seconds, how many]
	Rows    []failoverRecord `json:"rows"`   // newest first
}

// silences summarizes for how long roles were without a sign of life of a leader, in
// seconds; null if that is not known of any.
type silences struct {
	Median *float64 `json:"median_seconds"`
	P95    *float64 `json:"p95_seconds"`
	P99    *float64 `json:"p99_seconds"`
	Max    *float64 `json:"max_seconds"`
}

// maxPoints is how many are plotted one by one; more are combined on a grid.
const (
	maxPoints  = 1000
	columns    = 160
	perTenfold = 8
)

// failoverOf returns the change of leader from one term of a role, which may be
// unknown, to the next.
func failoverOf(before, t history.Term) failoverRecord {
	return failoverRecord{
		At: t.Began, Role: t.Role, Term: t.Term, NodeName: t.NodeName, Previous: before.NodeName, Reason: string(before.Reason),
		Vacant: seconds(t.PrecedingVacancy), Silent: known(t.PrecedingSilence),
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

// overall is the summary of all failovers, shared by all requests until there are more.
type overall struct {
	mu     sync.Mutex
	number uint64 // of the last event
	at     time.Time
	record failoversRecord // without rows
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
	return p.overall.record
}

// lastFailovers returns a page of all failovers and outages, newest first, and how many
// outages there are.
func (p *snapshot) lastFailovers(offset, limit int) (records []failoverRecord, outages int) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	records = []failoverRecord{}
	failover, outage := len(p.failovers)-1, len(p.found.outages)-1
	for place := 0; len(records) < limit && (failover >= 0 || outage >= 0); place++ {
		var r failoverRecord
		if outage >= 0 && (failover < 0 || p.found.outages[outage].At.After(p.failovers[failover].At)) {
			r = p.found.outages[outage]
			outage--
		} else {
			r = p.withIncident(p.failovers[failover])
			failover--
		}
		if place >= offset {
			records = append(records, r)
		}
	}
	return records, len(p.found.outages)
}

// withIncident returns a failover with the id of its incident. Under the mutex.
func (p *snapshot) withIncident(r failoverRecord) failoverRecord {
	if n, ok := p.found.began[termKey{r.Role, r.Term}]; ok {
		r.Incident = p.found.records[n].ID
	}
	return r
}

// quantile returns a value of a sorted list.
func quantile(sorted []float64, share float64) float64 {
	return sorted[int(share*float64(len(sorted)-1))]
}

// summary returns how long roles were vacant.
func summary(all []failoverRecord, now time.Time) failoversRecord {
	s := failoversRecord{Total: len(all), Rows: []failoverRecord{}}
	if len(all) == 0 {
		return s
	}
	s.Since = &all[len(all)-1].At
	var silent []float64
	durations := make([]float64, len(all))
	for i, r := range all {
		durations[i] = r.Vacant
		if r.Silent != nil {
			silent = append(silent, *r.Silent)
		}
		if now.Sub(r.At) < 24*time.Hour {
			s.Day++
		}
	}
	slices.Sort(durations)
	s.Median, s.P95, s.P99, s.Max = quantile(durations, 0.5), quantile(durations, 0.95), quantile(durations, 0.99), quantile(durations, 1)
	if len(silent) > 0 {
		slices.Sort(silent)
		at := func(share float64) *float64 { q := quantile(silent, share); return &q }
		s.Silent = silences{at(0.5), at(0.95), at(0.99), at(1)}
	}
	return s
}

// points returns the points of the plot.
func points(all []failoverRecord) [][3]float64 {
	plotted := make([][3]float64, 0, min(len(all), maxPoints))
	if len(all) <= maxPoints {
		for _, r := range all {
			plotted = append(plotted, [3]float64{float64(r.At.UnixMilli()), r.Vacant, 1})
		}
		return plotted
	}
	newest, oldest := all[0].At, all[len(all)-1].At
	width := max(newest.Sub(oldest)/columns, time.Millisecond)
	cells := map[[2]int]int{} // index in plotted
	for _, r := range all {
		cell := [2]int{int(r.At.Sub(oldest) / width), int(math.Round(math.Log10(max(r.Vacant, 1e-4)) * perTenfold))}
		i, ok := cells[cell]
		if !ok {
			i = len(plotted)
			cells[cell] = i
			plotted = append(plotted, [3]float64{float64(r.At.UnixMilli()), r.Vacant, 0})
		}
		plotted[i][2]++
	}
	return plotted
}
