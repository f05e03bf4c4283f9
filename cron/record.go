package cron

import (
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Record is the stored row of a run.
type Record struct {
	ID           int64
	Schedule     string
	ScheduledFor time.Time
	State        State
	Ticks        int64 // how many ticks it represents: more than 1 only for missed ticks
	Manual       bool
	RequestedBy  string
	Attempt      int       // counts from 1; higher after an interrupted attempt or a retry
	RetryAt      time.Time // when it is tried again; zero if it does not wait for a retry
	Term         int64     // the term that last ran it; 0 if it never ran
	NodeID       uuid.UUID // uuid.Nil if it never ran
	NodeName     string
	ClaimedAt    time.Time
	StartedAt    time.Time // zero if it never ran
	EndedAt      time.Time // zero if it has not ended
	Error        string
	// OutputBytes is the length of the last recorded attempt's text in [Run.Output], at
	// most 64 KiB, and Output the text. Only [Admin.Run] reads it.
	OutputBytes int
	Output      string
}

// nullableRecord scans a record, or none.
type nullableRecord struct {
	id, ticks, term                   *int64
	schedule, requestedBy, node, text *string
	scheduledFor, claimed             *time.Time
	started, ended, retryAt           *time.Time
	state                             *State
	manual                            *bool
	attempt, outputBytes              *int
	nodeID                            *uuid.UUID
}

func (n *nullableRecord) targets() []any {
	return []any{&n.id, &n.schedule, &n.scheduledFor, &n.state, &n.ticks, &n.manual, &n.requestedBy, &n.attempt, &n.term,
		&n.nodeID, &n.node, &n.claimed, &n.started, &n.ended, &n.text, &n.retryAt, &n.outputBytes}
}

func (n *nullableRecord) record() *Record {
	if n.id == nil {
		return nil
	}
	r := &Record{
		ID: *n.id, Schedule: *n.schedule, ScheduledFor: *n.scheduledFor, State: *n.state, Ticks: *n.ticks, Manual: *n.manual,
		RequestedBy: *n.requestedBy, Attempt: *n.attempt, Term: *n.term, NodeName: *n.node, ClaimedAt: *n.claimed, Error: *n.text,
		OutputBytes: *n.outputBytes,
	}
	if n.nodeID != nil {
		r.NodeID = *n.nodeID
	}
	if n.started != nil {
		r.StartedAt = *n.started
	}
	if n.ended != nil {
		r.EndedAt = *n.ended
	}
	if n.retryAt != nil {
		r.RetryAt = *n.retryAt
	}
	return r
}

func scanRecord(row pgx.CollectableRow) (Record, error) {
	var n nullableRecord
	if err := row.Scan(n.targets()...); err != nil {
		return Record{}, err
	}
	return *n.record(), nil
}
