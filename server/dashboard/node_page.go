package dashboard

import (
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/program/link"
)

// nodeDetail is the content of the page of a node.
type nodeDetail struct {
	Node      *nodeRecord      `json:"node"` // null if it is no longer in the registry
	ID        uuid.UUID        `json:"id"`
	Name      string           `json:"name"`
	Incidents []incidentRecord `json:"incidents"` // the latest first, at most maxIncidentsTold
	Links     []LinkAddress    `json:"links"`
}

func (d *Dashboard) getNode(w http.ResponseWriter, r *http.Request) {
	id, err := uuid.Parse(r.URL.Query().Get("id"))
	detail, ok := d.snapshot.nodeDetail(id)
	if err != nil || !ok {
		refuse(w, http.StatusNotFound, "no node with this id is known")
		return
	}
	detail.Links = d.config.linksOn(link.OnNode, map[string]string{"node": detail.Name, "time": linkTime(d.snapshot.heardFrom(id))})
	answer(w, http.StatusOK, detail)
}

// heardFrom is when a node sent its last heartbeat; zero if unknown.
func (p *snapshot) heardFrom(id uuid.UUID) (at time.Time) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if m, ok := p.member(id); ok {
		at = m.LastHeartbeat
	}
	return at
}

// nodeDetail returns the known facts of a node, even after it has left the registry.
func (p *snapshot) nodeDetail(id uuid.UUID) (nodeDetail, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	detail := nodeDetail{ID: id, Incidents: []incidentRecord{}}
	for _, n := range p.found.ofNode[id][:min(maxIncidentsTold, len(p.found.ofNode[id]))] {
		detail.Incidents = append(detail.Incidents, p.found.records[n])
	}
	if m, ok := p.member(id); ok {
		record := p.nodeRecord(m, p.leads())
		detail.Node, detail.Name = &record, m.Name
		return detail, true
	}
	for _, e := range slices.Backward(p.events) {
		if e.Node == id && e.NodeName != "" {
			detail.Name = e.NodeName
			return detail, true
		}
	}
	return detail, false
}
