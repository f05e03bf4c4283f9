package dashboard

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/incident"
	"github.com/exactly-one/tenure/internal/program/record"
)

// incidentDetail is the content of the page of an incident.
type incidentDetail struct {
	incidentRecord

	Evidence []string      `json:"evidence"` // sentences
	Moves    []record.Move `json:"moves"`    // at most maxMovesShown, those without a leader first
	Events   []eventRecord `json:"events"`   // changes of its nodes and actions, oldest first
	From     time.Time     `json:"from"`     // what a timeline of it shows
	To       time.Time     `json:"to"`
}

const (
	maxMovesShown = 500
	maxLanes      = 100
	maxLaneTerms  = 5000
)

// getIncidents lists incidents, the latest first.
func (d *Dashboard) getIncidents(w http.ResponseWriter, r *http.Request) {
	f := incidentFilter{
		wanted: search(r), kind: r.URL.Query().Get("kind"),
		from: timeOf(r, "from", time.Unix(0, 0)), to: timeOf(r, "to", latest),
	}
	offset, limit := pageOf(r)
	p := d.snapshot
	p.mu.RLock()
	page := list[incidentRecord]{Rows: []incidentRecord{}}
	put := func(record incidentRecord) {
		if page.Total++; page.Total > offset && len(page.Rows) < limit {
			page.Rows = append(page.Rows, record)
		}
	}
	if now, ok := p.unreadableIncident(); ok && f.wanted == "" && f.matches(now) {
		put(now)
	}
	for n, record := range p.found.records {
		if f.matches(record) && (f.wanted == "" || mentions(p.found.all[n], f.wanted)) {
			put(record)
		}
	}
	p.mu.RUnlock()
	answer(w, http.StatusOK, page)
}

// incidentFilter selects the incidents of a page.
type incidentFilter struct {
	wanted, kind string // empty: any
	from, to     time.Time
}

// matches reports whether an incident is of the kind and within the times.
func (f incidentFilter) matches(i incidentRecord) bool {
	return (f.kind == "" || i.Kind == f.kind) && !i.Began.After(f.to) && (i.Ended == nil || !i.Ended.Before(f.from))
}

// mentions reports whether an incident is about a node, a role or a requester.
func mentions(i incident.Incident, wanted string) bool {
	return contains(i.By, wanted) || slices.ContainsFunc(i.Nodes, func(n incident.Node) bool { return contains(n.Name, wanted) }) ||
		slices.ContainsFunc(i.Moves, func(m incident.Move) bool { return contains(m.From.Role, wanted) || contains(m.To.NodeName, wanted) })
}

// getIncident returns one incident with its single changes.
func (d *Dashboard) getIncident(w http.ResponseWriter, r *http.Request) {
	detail, ok := d.snapshot.incident(r.URL.Query().Get("id"))
	if !ok {
		refuse(w, http.StatusNotFound, "no such incident is known")
		return
	}
	answer(w, http.StatusOK, detail)
}

func (p *snapshot) incident(id string) (incidentDetail, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if now, ok := p.unreadableIncident(); ok && id == unreadableID {
		return incidentDetail{
			incidentRecord: now, Evidence: []string{"This dashboard reads the database every few seconds. The last answer is of " + moment(now.Began) + "."},
			Moves: []record.Move{}, Events: []eventRecord{}, From: now.Began.Add(-time.Minute), To: p.clock(),
		}, true
	}
	if id == latestID && len(p.found.records) > 0 {
		id = p.found.records[0].ID
	}
	if id == unreadableID && len(p.found.outages) > 0 { // it is over and recorded
		id = p.found.outages[len(p.found.outages)-1].Incident
	}
	n, ok := p.found.byID[id]
	if !ok {
		return incidentDetail{}, false
	}
	i := p.found.all[n]
	detail := incidentDetail{incidentRecord: p.found.records[n], Evidence: i.Evidence(sentenceStyle), Moves: movesOf(i), Events: []eventRecord{}}
	over := p.clock()
	if !i.Ended.IsZero() {
		over = i.Ended
	}
	around := max(over.Sub(i.Began)/2, 10*time.Second)
	detail.From, detail.To = i.Began.Add(-around), over.Add(around)
	for _, e := range p.events {
		if e.Kind == eventNode && p.found.incidentOfEvent(e) == id || e.Kind == eventAction && p.caused(e, i) {
			e.Incident = id
			detail.Events = append(detail.Events, e)
		}
	}
	return detail, true
}

// caused reports whether a visitor's action may have caused an incident.
func (*snapshot) caused(e eventRecord, i incident.Incident) bool {
	if i.Unplanned() || e.At.Before(i.Began.Add(-time.Minute)) || e.At.After(i.Began.Add(time.Second)) {
		return false
	}
	return slices.ContainsFunc(i.Nodes, func(n incident.Node) bool { return n.ID == e.Node }) ||
		slices.ContainsFunc(i.Moves, func(m incident.Move) bool { return e.Role != "" && m.From.Role == e.Role })
}

// movesOf returns the moves of an incident: waiting ones first, then the longest.
func movesOf(i incident.Incident) []record.Move {
	took := func(m incident.Move) time.Duration {
		if m.To.Term == 0 {
			return math.MaxInt64
		}
		if without := m.WithoutLeader(); without >= 0 {
			return without
		}
		return m.To.Began.Sub(m.From.Ended)
	}
	sorted := slices.SortedStableFunc(slices.Values(i.Moves), func(a, b incident.Move) int {
		return cmp.Or(cmp.Compare(took(b), took(a)), a.From.Ended.Compare(b.From.Ended))
	})
	moves := []record.Move{}
	for _, m := range cut(sorted, 0, maxMovesShown) {
		moves = append(moves, record.NewMove(m))
	}
	return moves
}

// lanesRecord is a timeline over several roles.
type lanesRecord struct {
	Nodes []nodeName `json:"nodes"`
	Lanes []lane     `json:"lanes"`
	Total int        `json:"total"` // roles that match
}

// lane is the terms of a role.
type lane struct {
	Role string `json:"role"`
	// Spans are [began ms, ended ms or null, node, reason, seconds without a leader before or null].
	Spans [][5]any `json:"spans"`
	// Retired is when the role was retired after its last term, in ms, or null: since then
	// it needs no leader.
	Retired any `json:"retired"`
}

// getLanes returns who led which role in a range of time: all roles, or an incident's.
func (d *Dashboard) getLanes(w http.ResponseWriter, r *http.Request) {
	wanted, id := search(r), r.URL.Query().Get("incident")
	offset := number(r, "offset", 0, 0, 1<<30)
	from, to := timeOf(r, "from", time.Unix(0, 0)), timeOf(r, "to", latest)
	p := d.snapshot
	p.mu.RLock()
	of := p.rolesOfIncident(id)
	roles := p.past.byRole(func(role string) bool {
		return (of == nil || of[role]) && (wanted == "" || contains(role, wanted))
	})
	for name, role := range p.roles { // its last term may be older than all that is kept
		if roles[name] == nil && role.term.Term > 0 && (of == nil || of[name]) && (wanted == "" || contains(name, wanted)) {
			roles[name] = []history.Term{role.term}
		}
	}
	p.mu.RUnlock()
	answer(w, http.StatusOK, lanesOf(roles, from, to, offset))
}

// rolesOfIncident returns the roles of an incident, or nil for all. Under the mutex.
func (p *snapshot) rolesOfIncident(id string) map[string]bool {
	n, ok := p.found.byID[id]
	if !ok {
		return nil
	}
	of := map[string]bool{}
	for _, m := range p.found.all[n].Moves {
		of[m.From.Role] = true
	}
	return of
}

func lanesOf(roles map[string][]history.Term, from, to time.Time, offset int) lanesRecord {
	drawn := lanesRecord{Nodes: []nodeName{}, Lanes: []lane{}}
	nodes := map[uuid.UUID]int{}
	var names []string
	for role, terms := range roles {
		if slices.ContainsFunc(terms, func(t history.Term) bool { return overlaps(t, from, to) }) {
			names = append(names, role)
		}
	}
	slices.SortFunc(names, strings.Compare)
	drawn.Total = len(names)
	terms := 0
	for _, role := range cut(names, offset, maxLanes) {
		l := lane{Role: role, Spans: [][5]any{}}
		for i, t := range roles[role] {
			l.Retired = nil
			if !t.Retired.IsZero() {
				l.Retired = t.Retired.UnixMilli()
			}
			if !overlaps(t, from, to) || terms >= maxLaneTerms {
				continue
			}
			terms++
			at, ok := nodes[t.Node]
			if !ok {
				at = len(drawn.Nodes)
				nodes[t.Node] = at
				drawn.Nodes = append(drawn.Nodes, nodeName{t.Node, t.NodeName})
			}
			var ended any
			if !t.Ended.IsZero() {
				ended = t.Ended.UnixMicro() / 1000
			}
			var reason tenure.EndReason // of the term before
			if i > 0 {
				reason = roles[role][i-1].Reason
			}
			l.Spans = append(l.Spans, [5]any{t.Began.UnixMicro() / 1000, ended, at, string(t.Reason), gapBefore(reason, t).Without})
		}
		drawn.Lanes = append(drawn.Lanes, l)
	}
	return drawn
}

func overlaps(t history.Term, from, to time.Time) bool {
	return !t.Began.After(to) && (t.Ended.IsZero() || !t.Ended.Before(from))
}
