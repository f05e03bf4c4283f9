package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/record"
)

func (d *Dashboard) getNow(w http.ResponseWriter, _ *http.Request) {
	now := d.snapshot.now()
	d.snapshot.mu.RLock()
	work, alerts := d.snapshot.work, d.snapshot.alerts
	d.snapshot.mu.RUnlock()
	answer(w, http.StatusOK, map[string]any{
		"now": now, "work": work, "alerts": alerts, "alerts_shown": d.config.Alerts != nil, "alert_actions": d.config.HandleAlert != nil,
		"incidents": d.snapshot.incidentsNow(),
	})
}

// getRoles lists roles. By default, roles with problems come first.
func (d *Dashboard) getRoles(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	state, node, wanted := query.Get("state"), query.Get("node"), search(r)
	offset, limit := pageOf(r)
	p := d.snapshot
	p.mu.RLock()
	var names []string
	for _, name := range p.names {
		role := p.roles[name]
		if state != "" && role.state != state || node != "" && (!role.isLed() || role.term.Node.String() != node) ||
			wanted != "" && !contains(name, wanted) && !contains(role.term.NodeName, wanted) {
			continue
		}
		names = append(names, name)
	}
	slices.SortStableFunc(names, p.order(query.Get("sort")))
	if query.Get("down") != "" {
		slices.Reverse(names)
	}
	page := list[roleRecord]{Total: len(names), Rows: []roleRecord{}}
	for _, name := range cut(names, offset, limit) {
		page.Rows = append(page.Rows, p.roleRecord(name))
	}
	p.mu.RUnlock()
	answer(w, http.StatusOK, page)
}

func (d *Dashboard) getRole(w http.ResponseWriter, r *http.Request) {
	role, ok := d.snapshot.role(r.URL.Query().Get("name"))
	if !ok {
		refuse(w, http.StatusNotFound, "no role of this name has ever been led")
		return
	}
	all, now := d.snapshot.failoversOf(role.Name)
	answer(w, http.StatusOK, map[string]any{
		"role": role, "failovers": summary(all, now), "links": d.config.roleLinks(role), "others": d.snapshot.others(role),
	})
}

// othersRecord is who could take over a role. The database has no list of candidates.
type othersRecord struct {
	Active int         `json:"active"`     // nodes
	Before []uuid.UUID `json:"led_before"` // of them, under their names, as far as the history reaches
}

// others returns the nodes with a chance to take over a role.
func (p *snapshot) others(role roleRecord) othersRecord {
	p.mu.RLock()
	defer p.mu.RUnlock()
	before := map[string]bool{}
	for _, t := range p.past.terms {
		if t.Role == role.Name {
			before[t.NodeName] = true
		}
	}
	others := othersRecord{Before: []uuid.UUID{}}
	for _, m := range p.members {
		if m.ID == role.Node || p.nodeState(m) != string(tenure.StatusActive) {
			continue
		}
		if others.Active++; before[m.Name] {
			others.Before = append(others.Before, m.ID)
		}
	}
	return others
}

func (d *Dashboard) getTerms(w http.ResponseWriter, r *http.Request) {
	line, ok := d.timelineOf(w, r)
	if !ok {
		return
	}
	offset, limit := pageOf(r)
	rows, total := line.page(search(r), offset, limit)
	answer(w, http.StatusOK, list[termRecord]{Total: total, Rows: rows})
}

func (d *Dashboard) getTimeline(w http.ResponseWriter, r *http.Request) {
	line, ok := d.timelineOf(w, r)
	if !ok {
		return
	}
	to := timeOf(r, "to", time.Now().Add(time.Hour))
	answer(w, http.StatusOK, line.view(timeOf(r, "from", time.Unix(0, 0)), to, number(r, "spans", 1000, 10, 4000)))
}

func (d *Dashboard) timelineOf(w http.ResponseWriter, r *http.Request) (*timeline, bool) {
	line, err := d.readTimeline(r.Context(), r.URL.Query().Get("role"))
	if err == nil {
		return line, true
	}
	switch {
	case errors.Is(err, errUnknown):
		refuse(w, http.StatusNotFound, "no role of this name has ever been led")
	default:
		d.log.Warn("the dashboard cannot read the database", "error", err)
		refuse(w, http.StatusServiceUnavailable, "the database is not responding")
	}
	return nil, false
}

func (d *Dashboard) getNodes(w http.ResponseWriter, r *http.Request) {
	wanted := search(r)
	offset, limit := pageOf(r)
	p := d.snapshot
	p.mu.RLock()
	page := list[nodeRecord]{Rows: []nodeRecord{}}
	leads := p.leads()
	for _, m := range p.shownMembers() {
		if wanted != "" && !contains(m.Name, wanted) && !contains(m.Host, wanted) && !contains(m.ID.String(), wanted) {
			continue
		}
		if page.Total++; page.Total > offset && len(page.Rows) < limit {
			page.Rows = append(page.Rows, p.nodeRecord(m, leads))
		}
	}
	p.mu.RUnlock()
	answer(w, http.StatusOK, page)
}

// mentions reports whether an event mentions a role, a node or a user.
func (e eventRecord) mentions(wanted string) bool {
	return contains(e.Role, wanted) || contains(e.NodeName, wanted) || contains(e.By, wanted) || contains(e.Detail, wanted)
}

// getEvents lists the events, the newest first.
func (d *Dashboard) getEvents(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	wanted, kind, fold, node := search(r), query.Get("kind"), query.Get("fold") != "", query.Get("node")
	offset, limit := pageOf(r)
	p := d.snapshot
	p.mu.RLock()
	page := list[eventRecord]{Rows: []eventRecord{}}
	folded := map[string]bool{}
	for _, e := range slices.Backward(p.events) {
		if kind != "" && e.Kind != kind || wanted != "" && !e.mentions(wanted) || node != "" && e.Node.String() != node {
			continue
		}
		if e.Incident = p.found.incidentOfEvent(e); fold && e.Incident != "" {
			if folded[e.Incident] {
				continue
			}
			folded[e.Incident] = true
			e = p.found.event(e)
		}
		if page.Total++; page.Total > offset && len(page.Rows) < limit {
			page.Rows = append(page.Rows, e)
		}
	}
	p.mu.RUnlock()
	answer(w, http.StatusOK, page)
}

func (d *Dashboard) getFailovers(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	matches := failoverFilter(query.Get("kind"), search(r))
	offset, limit := pageOf(r)
	var shown failoversRecord
	if role := query.Get("role"); role == "" {
		shown = d.snapshot.allFailovers()
		shown.Rows, shown.Total = d.snapshot.lastFailovers(matches, offset, limit)
	} else {
		all, now := d.snapshot.failoversOf(role)
		shown = summary(all, now)
		shown.Points = points(all)
		all = slices.DeleteFunc(all, func(r failoverRecord) bool { return !matches(r) })
		shown.Rows, shown.Total = cut(all, offset, limit), len(all)
	}
	if offset > 0 {
		shown.Points = nil
	}
	answer(w, http.StatusOK, shown)
}

// auditRecord is an action of an operator.
type auditRecord struct {
	record.AuditAction

	Number int `json:"number"`
}

// getAudit lists the actions with their users, the latest first.
func (d *Dashboard) getAudit(w http.ResponseWriter, r *http.Request) {
	if d.audit == nil {
		refuse(w, http.StatusNotFound, "this dashboard has no database connection for the actions of operators")
		return
	}
	entries, err := d.audit.latest(r.Context())
	if err != nil {
		d.log.Warn("the actions of operators cannot be read", "error", err)
		refuse(w, http.StatusServiceUnavailable, "the database cannot be read; see the log of the dashboard")
		return
	}
	wanted := search(r)
	offset, limit := pageOf(r)
	page := list[auditRecord]{Rows: []auditRecord{}}
	for i, e := range entries {
		if wanted != "" && !strings.Contains(strings.ToLower(strings.Join([]string{e.By, e.Kind, e.Name, e.Action, e.Detail}, " ")), wanted) {
			continue
		}
		if page.Total++; page.Total > offset && len(page.Rows) < limit {
			page.Rows = append(page.Rows, auditRecord{record.NewAuditAction(e), len(entries) - i})
		}
	}
	answer(w, http.StatusOK, page)
}

// readTimeline returns the timeline of an existing role.
func (d *Dashboard) readTimeline(ctx context.Context, role string) (*timeline, error) {
	if _, ok := d.snapshot.role(role); !ok {
		return nil, errUnknown
	}
	line, err := d.timelines.of(ctx, role)
	if err != nil {
		return nil, fmt.Errorf("read the history of a role: %w", err)
	}
	return line, nil
}
