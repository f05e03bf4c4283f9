package record

import (
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/incident"
)

// Incident is an incident, without its moves.
type Incident struct {
	ID        string         `json:"id"`
	Kind      string         `json:"kind"`
	Unplanned bool           `json:"unplanned"`
	Began     Time           `json:"began_at"`
	Ended     Time           `json:"ended_at"`       // null while a role has no leader
	Lasted    float64        `json:"lasted_seconds"` // 0 while it lasts
	Sentence  string         `json:"sentence"`
	By        string         `json:"requested_by"`
	Nodes     []IncidentNode `json:"nodes"`
}

// IncidentNode is a node of an incident.
type IncidentNode struct {
	ID   uuid.UUID `json:"id"`
	Name string    `json:"name"`
}

// NewIncident returns the record of an incident, with times in UTC.
func NewIncident(i incident.Incident) Incident {
	r := Incident{
		ID: i.ID(), Kind: string(i.Kind), Unplanned: i.Unplanned(), Began: Time(i.Began), Ended: Time(i.Ended), Lasted: i.Lasted().Seconds(),
		Sentence: i.Sentence(time.UTC), By: i.By, Nodes: []IncidentNode{},
	}
	for _, n := range i.Nodes {
		r.Nodes = append(r.Nodes, IncidentNode(n))
	}
	return r
}

// Move is the move of a role: the end of a term, and the begin of the next one.
type Move struct {
	Role    string `json:"role"`
	From    string `json:"from"` // the node
	Ended   Time   `json:"ended_at"`
	Reason  string `json:"end_reason"`
	By      string `json:"requested_by"`
	To      string `json:"to"`       // the node; empty while the role has no leader
	Began   Time   `json:"began_at"` // null while the role has no leader
	Blocker string `json:"blocked_by"`

	// Null if unknown.
	Without *float64 `json:"without_leader_seconds"` // from when a leader could last act to when the next one could
	Vacant  *float64 `json:"vacant_seconds"`         // of it, while the lock was free
	Silent  *float64 `json:"silent_seconds"`         // since the last sign of life of the previous leader
}

// NewMove returns the record of a move.
func NewMove(m incident.Move) Move {
	r := Move{Role: m.From.Role, From: m.From.NodeName, Ended: Time(m.From.Ended), Reason: string(m.From.Reason), By: m.From.By}
	if m.To.Term > 0 {
		r.To, r.Began, r.Blocker = m.To.NodeName, Time(m.To.Began), m.To.PrecedingBlocker
		r.Without, r.Vacant, r.Silent = Known(m.WithoutLeader()), Known(m.To.PrecedingVacancy), Known(m.To.PrecedingSilence)
	}
	return r
}

// Known returns a duration in seconds, to the microsecond, or nil for a negative one: it is
// unknown.
func Known(d time.Duration) *float64 {
	if d < 0 {
		return nil
	}
	s := d.Round(time.Microsecond).Seconds()
	return &s
}
