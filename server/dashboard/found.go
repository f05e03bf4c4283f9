package dashboard

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/incident"
	"github.com/exactly-one/tenure/internal/program/record"
)

const (
	// unreadableID is the id of the present outage: the database cannot record it.
	unreadableID = "unreadable"
	// latestID is the id for reading the latest incident.
	latestID = "latest"
	// recentIncident is how long an ended incident stays in the banner.
	recentIncident = 10 * time.Minute
	// maxIncidentsTold is how many ended incidents are published.
	maxIncidentsTold = 20
	// maxNodesNamed bounds the nodes of a published incident.
	maxNodesNamed = 50
	// The time between two groupings: ten times as long as one takes.
	regroupRest    = 250 * time.Millisecond
	maxRegroupRest = 2 * time.Second
)

// incidentRecord is an incident without its single changes.
type incidentRecord struct {
	ID        string     `json:"id"`
	Kind      string     `json:"kind"`
	Unplanned bool       `json:"unplanned"`
	Sentence  string     `json:"sentence"` // with times as moment marks them
	Began     time.Time  `json:"began_at"`
	Ended     *time.Time `json:"ended_at"`       // null while a role has no leader
	Lasted    float64    `json:"lasted_seconds"` // 0 while it lasts
	By        string     `json:"requested_by"`
	Nodes     []nodeName `json:"nodes"`
	Roles     int        `json:"roles"`  // that moved, or stood still
	Vacant    int        `json:"vacant"` // of them, now
	Changes   int        `json:"changes"`
}

// sentenceStyle shows incidents on the page.
var sentenceStyle = incident.Style{Time: moment, Name: quoted, Text: func(cause string) string { return quotedUpTo(cause, mostErrorRunes) }}

// found is the result of a grouping.
type found struct {
	all     []incident.Incident // the latest first
	records []incidentRecord    // of them
	byID    map[string]int      // the index
	ended   map[termKey]int     // by the term that ended
	began   map[termKey]int     // by the next term, which began
	ofNode  map[uuid.UUID][]int
	outages []failoverRecord // oldest first
	down    []int            // the indexes of outages
}

func newFound(all []incident.Incident) *found {
	f := &found{all: all, records: make([]incidentRecord, len(all)), byID: map[string]int{}, ended: map[termKey]int{}, began: map[termKey]int{}, ofNode: map[uuid.UUID][]int{}}
	for n, i := range all {
		f.records[n] = incidentOf(i)
		f.byID[f.records[n].ID] = n
		for _, m := range i.Moves {
			f.ended[termKey{m.From.Role, m.From.Term}] = n
			f.began[termKey{m.To.Role, m.To.Term}] = n
		}
		for _, node := range i.Nodes {
			f.ofNode[node.ID] = append(f.ofNode[node.ID], n)
		}
	}
	for n, i := range slices.Backward(all) {
		if i.Kind == incident.Outage {
			f.down = append(f.down, n)
			f.outages = append(f.outages, failoverRecord{
				gap:  gap{Without: record.Known(i.Outage.Ended.Sub(i.Outage.Began))},
				Kind: kindOutage, At: i.Outage.Ended, Roles: len(i.Outage.Roles), Incident: f.records[n].ID,
			})
		}
	}
	return f
}

func incidentOf(i incident.Incident) incidentRecord {
	r := incidentRecord{
		ID: i.ID(), Kind: string(i.Kind), Unplanned: i.Unplanned(), Sentence: i.Describe(sentenceStyle), Began: i.Began, By: i.By,
		Nodes: []nodeName{}, Roles: len(i.Moves), Vacant: i.Vacant(), Changes: len(i.Moves),
	}
	if !i.Ended.IsZero() {
		r.Ended, r.Lasted = &i.Ended, i.Lasted().Seconds()
	}
	if i.Outage != nil {
		r.Roles = max(r.Roles, len(i.Outage.Roles))
	}
	for _, n := range i.Nodes[:min(maxNodesNamed, len(i.Nodes))] {
		r.Nodes = append(r.Nodes, nodeName{n.ID, n.Name})
	}
	return r
}

// incidentOfEvent returns the id of the incident of an event, if any.
func (f *found) incidentOfEvent(e eventRecord) string {
	n, ok := -1, false
	switch e.Kind {
	case eventEnded:
		n, ok = f.ended[termKey{e.Role, e.Term}]
	case eventBegan:
		n, ok = f.began[termKey{e.Role, e.Term}]
	case eventNode:
		for _, one := range f.ofNode[e.Node] {
			if e.At.Sub(f.records[one].Began).Abs() <= 2*time.Minute && f.records[one].Kind != string(incident.Change) && !joins(e) {
				n, ok = one, true
				break
			}
		}
		if !ok && e.By == "" && e.Previous != "" && (e.Status == dead || e.Status == string(tenure.StatusActive)) {
			n = slices.IndexFunc(f.down, func(n int) bool { return f.all[n].Covers(e.At) })
			if ok = n >= 0; ok {
				n = f.down[n]
			}
		}
	}
	if !ok {
		return ""
	}
	return f.records[n].ID
}

// joins reports whether an event is the joining of a new node. It is not part of the
// node's later incidents.
func joins(e eventRecord) bool { return e.Previous == "" && e.Status != "left" }

// event returns an incident in place of the last of its events.
func (f *found) event(last eventRecord) eventRecord {
	r := f.records[f.byID[last.Incident]]
	return eventRecord{Number: last.Number, At: last.At, Kind: eventIncident, Status: r.Kind, Detail: r.Sentence, Incident: r.ID, Unplanned: r.Unplanned}
}
