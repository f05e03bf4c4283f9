package roles

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/incident"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/postgres"
)

// IncidentHistoryRecord lists incidents as printed.
type IncidentHistoryRecord struct {
	Incidents []IncidentRecord `json:"incidents"`
}

// IncidentRecord is an incident as printed.
type IncidentRecord struct {
	record.Incident

	Moves []record.Move `json:"moves"`
}

// maxChanges is how many changes of each kind are read to find incidents.
const maxChanges = 20_000

// aftermath is how long after the end of the period the changes that belong to an
// incident are read.
const aftermath = time.Hour

func (c *historyCommand) printIncidents(ctx context.Context, backend *postgres.Backend, query history.Query) error {
	most, until := query.Limit, query.Until
	query.Limit = maxChanges
	if !until.IsZero() {
		query.Until = until.Add(aftermath)
	}
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
	incidents := slices.DeleteFunc(incident.Group(changes), func(i incident.Incident) bool {
		return !until.IsZero() && !i.Began.Before(until)
	})
	incidents = incidents[:min(most, len(incidents))]
	printed := IncidentHistoryRecord{Incidents: make([]IncidentRecord, len(incidents))}
	rows := [][]string{{"BEGAN", "KIND", "ROLES", "WHAT"}}
	for i, found := range incidents {
		printed.Incidents[i] = newIncidentRecord(found)
		rows = append(rows, []string{
			console.ShortTime(found.Began), string(found.Kind), strconv.Itoa(len(found.Moves)), console.Flatten(found.Sentence(time.Local)),
		})
	}
	return c.out.PrintProse(printed, rows, "ROLES", "KIND")
}

func newIncidentRecord(i incident.Incident) IncidentRecord {
	r := IncidentRecord{Incident: record.NewIncident(i), Moves: []record.Move{}}
	for _, m := range i.Moves {
		r.Moves = append(r.Moves, record.NewMove(m))
	}
	return r
}
