package roles

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/incident"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/postgres"
)

// IncidentHistoryRecord lists incidents as printed.
type IncidentHistoryRecord struct {
	Incidents []IncidentRecord `json:"incidents"`
}

// IncidentRecord is an incident as printed.
type IncidentRecord struct {
	Kind     string               `json:"kind"`
	Began    console.Timestamp    `json:"began_at"`
	Ended    console.Timestamp    `json:"ended_at"` // null while a role has no leader
	Sentence string               `json:"sentence"`
	By       string               `json:"requested_by"`
	Nodes    []incidentNodeRecord `json:"nodes"`
	Moves    []MoveRecord         `json:"moves"`
}

type incidentNodeRecord struct {
	ID   uuid.UUID `json:"id"`
	Name string    `json:"name"`
}

// MoveRecord is the move of a role as printed.
type MoveRecord struct {
	Role   string            `json:"role"`
	From   string            `json:"from"` // the node
	Ended  console.Timestamp `json:"ended_at"`
	Reason string            `json:"end_reason"`
	To     string            `json:"to"` // the node; empty while the role has no leader
	Began  console.Timestamp `json:"began_at"`
	Vacant *float64          `json:"vacant_seconds"` // null if unknown
	Silent *float64          `json:"silent_seconds"` // null if unknown
	// Blocker names the transactions in the way of the next term.
	Blocker string `json:"blocked_by"`
}

// maxChanges is how many changes of each kind are read to find incidents.
const maxChanges = 20_000

func (c *historyCommand) printIncidents(ctx context.Context, backend *postgres.Backend, query history.Query) error {
	most := query.Limit
	query.Limit = maxChanges
	var (
		changes incident.Changes
		err     error
	)
	if changes.Terms, err = backend.History(ctx, query); err != nil {
		return err
	}
	if changes.Nodes, err = backend.NodeHistory(ctx, query); err != nil {
		return err
	}
	if changes.Outages, err = backend.Outages(ctx, query); err != nil {
		return err
	}
	incidents := incident.Group(changes)
	incidents = incidents[:min(most, len(incidents))]
	record := IncidentHistoryRecord{Incidents: make([]IncidentRecord, len(incidents))}
	rows := [][]string{{"BEGAN", "KIND", "ROLES", "WHAT"}}
	for i, found := range incidents {
		record.Incidents[i] = newIncidentRecord(found)
		rows = append(rows, []string{
			console.ShortTime(found.Began), string(found.Kind), strconv.Itoa(len(found.Moves)), console.Flatten(found.Sentence(time.Local)),
		})
	}
	return c.out.PrintTable(record, rows, "ROLES", "KIND")
}

func newIncidentRecord(i incident.Incident) IncidentRecord {
	r := IncidentRecord{
		Kind: string(i.Kind), Began: console.Timestamp(i.Began), Ended: console.Timestamp(i.Ended), Sentence: i.Sentence(time.UTC), By: i.By,
		Nodes: []incidentNodeRecord{}, Moves: []MoveRecord{},
	}
	for _, n := range i.Nodes {
		r.Nodes = append(r.Nodes, incidentNodeRecord(n))
	}
	for _, m := range i.Moves {
		move := MoveRecord{Role: m.From.Role, From: m.From.NodeName, Ended: console.Timestamp(m.From.Ended), Reason: string(m.From.Reason)}
		if m.To.Term > 0 {
			move.Blocker = m.To.PrecedingBlocker
			move.To, move.Began = m.To.NodeName, console.Timestamp(m.To.Began)
			move.Vacant, _ = orDash(m.To.PrecedingVacancy)
			move.Silent, _ = orDash(m.To.PrecedingSilence)
		}
		r.Moves = append(r.Moves, move)
	}
	return r
}
