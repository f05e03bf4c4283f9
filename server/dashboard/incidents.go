package dashboard

import (
	"time"

	"github.com/exactly-one/tenure/internal/incident"
)

// regroup finds the incidents again if there are more changes.
func (w *watcher) regroup() {
	if time.Now().Before(w.incidents.next) {
		return
	}
	began := time.Now()
	p := w.snapshot
	p.mu.Lock()
	dirty, changes := p.past.dirty, incident.Changes{}
	if dirty {
		changes, p.past.dirty = p.past.changes(), false
	}
	p.mu.Unlock()
	if !dirty {
		return
	}
	found := newFound(incident.Group(changes))
	p.mu.Lock()
	p.found = found
	p.mu.Unlock()
	took := time.Since(began)
	w.incidents.next = time.Now().Add(min(max(regroupRest, 10*took), maxRegroupRest))
}

// unreadableIncident is the present outage, without an end yet. Under the mutex.
func (p *snapshot) unreadableIncident() (incidentRecord, bool) {
	if p.problem == nil || !p.seen {
		return incidentRecord{}, false
	}
	began := *p.onClock(p.problem.since)
	return incidentRecord{
		ID: unreadableID, Kind: string(incident.Outage), Unplanned: true, Began: began, Nodes: []nodeName{}, Roles: len(p.names),
		Sentence: p.cannotBeRead(),
	}, true
}

// incidentsNow are the open incidents and the last ones, the latest first.
func (p *snapshot) incidentsNow() []incidentRecord {
	p.mu.RLock()
	defer p.mu.RUnlock()
	told := []incidentRecord{}
	if now, ok := p.unreadableIncident(); ok {
		told = append(told, now)
	}
	for n, r := range p.found.records {
		if n < maxIncidentsTold || r.Ended == nil && len(told) < 2*maxIncidentsTold {
			told = append(told, r)
		}
	}
	return told
}
