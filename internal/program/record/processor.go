package record

import (
	"github.com/google/uuid"

	"github.com/exactly-one/tenure/processor"
)

// Processors is the list of processors as printed.
type Processors struct {
	Processors []Processor `json:"processors"`
}

// Processor is a processor as printed.
type Processor struct {
	Processor     string     `json:"processor"`
	Kind          string     `json:"kind"`
	Role          string     `json:"role"`
	Log           string     `json:"log"`
	Status        string     `json:"status"`
	Cursor        string     `json:"cursor"`
	Term          int64      `json:"term"` // the last term that ran it
	Node          *uuid.UUID `json:"node"` // null if it never ran
	NodeName      string     `json:"node_name"`
	Led           bool       `json:"led"`
	Busy          bool       `json:"busy"`
	Rebuilding    bool       `json:"rebuilding"`
	Processed     int64      `json:"processed"`
	Behind        int64      `json:"behind"`
	WaitingSince  Time       `json:"waiting_since"`
	Errors        int        `json:"errors"`
	Panics        int64      `json:"panics"`
	Failing       *string    `json:"failing"` // the failing event; null if none fails or it is not known yet
	LastError     string     `json:"last_error,omitempty"`
	LastErrorAt   Time       `json:"last_error_at"`
	NextAttemptAt Time       `json:"next_attempt_at"`
	StuckError    string     `json:"stuck_error,omitempty"` // why it cannot work; absent while it works
	StuckSince    Time       `json:"stuck_since"`
	StuckErrors   int        `json:"stuck_errors"` // how often it has failed since
	DeadLetters   int        `json:"dead_letters"`
	RefusedRole   string     `json:"refused_role,omitempty"` // another role that tried to run it within the last minute
	RefusedNode   string     `json:"refused_node,omitempty"`
	UpdatedAt     Time       `json:"updated_at"`
}

// NewProcessor returns a processor.
func NewProcessor(s processor.Status) Processor {
	r := Processor{
		Processor: s.Name, Kind: s.Kind, Role: s.Role, Log: s.Log, Status: s.Status, Cursor: s.Cursor.String(),
		Term: s.Term, NodeName: s.NodeName, Led: s.Led, Busy: s.Busy, Rebuilding: s.Rebuilding,
		Processed: s.Processed, Behind: s.Behind, WaitingSince: Time(s.WaitingSince),
		Errors: s.Errors, Panics: s.Panics, LastError: s.LastError, LastErrorAt: Time(s.LastErrorAt),
		NextAttemptAt: Time(s.NextAttemptAt), StuckError: s.StuckError, StuckSince: Time(s.StuckSince), StuckErrors: s.StuckErrors,
		DeadLetters: s.DeadLetters, RefusedRole: s.RefusedRole, RefusedNode: s.RefusedNode, UpdatedAt: Time(s.UpdatedAt),
	}
	if s.NodeID != uuid.Nil {
		r.Node = &s.NodeID
	}
	if s.Failing != (processor.Cursor{}) {
		failing := s.Failing.String()
		r.Failing = &failing
	}
	return r
}

// Lags is the lag of processors as printed.
type Lags struct {
	Processors []Lag      `json:"processors"`
	Horizon    logHorizon `json:"horizon"`
}

// Lag is how far a processor is behind its log, as its leader measured it.
type Lag struct {
	Processor      string  `json:"processor"`
	Led            bool    `json:"led"`
	Behind         int64   `json:"behind"`
	More           bool    `json:"more"`
	Held           int64   `json:"held"`
	WaitingSeconds float64 `json:"waiting_seconds"`
	AsOf           Time    `json:"as_of"`       // when the leader measured it; null if none did
	AgeSeconds     float64 `json:"age_seconds"` // how long ago that was
}

// logHorizon is the horizon of the database cluster; only the first holder
// holds it.
type logHorizon struct {
	Transaction uint64          `json:"transaction"`
	AgeSeconds  float64         `json:"age_seconds"`
	Holders     []horizonHolder `json:"holders"`
}

type horizonHolder struct {
	Transaction uint64  `json:"transaction"`
	PID         int     `json:"pid"`      // 0 if it is prepared
	Prepared    string  `json:"prepared"` // empty if it is not
	Database    string  `json:"database"`
	User        string  `json:"user"`
	Application string  `json:"application"`
	State       string  `json:"state"`
	AgeSeconds  float64 `json:"age_seconds"`
	Query       string  `json:"query"`
}

// NewLag returns the lag of a processor.
func NewLag(l processor.Lag) Lag {
	return Lag{l.Name, l.Led, l.Behind, l.Truncated, l.BlockedByHorizon, l.OldestWait.Seconds(), Time(l.AsOf), l.Age.Seconds()}
}

// NewLags returns the lag of processors, and the horizon.
func NewLags(lags []processor.Lag, horizon processor.Horizon) Lags {
	all := Lags{
		Processors: []Lag{},
		Horizon:    logHorizon{horizon.Transaction, horizon.Age().Seconds(), []horizonHolder{}},
	}
	for _, l := range lags {
		all.Processors = append(all.Processors, NewLag(l))
	}
	for _, h := range horizon.Holders {
		all.Horizon.Holders = append(all.Horizon.Holders, horizonHolder{
			h.Transaction, h.PID, h.Prepared, h.Database, h.User, h.Application, h.State, h.Age.Seconds(), h.Query,
		})
	}
	return all
}

// DeadLetters lists the dead letters of a processor as printed.
type DeadLetters struct {
	Processor   string       `json:"processor"`
	DeadLetters []DeadLetter `json:"dead_letters"`
}

// DeadLetter is an event set aside by a processor.
type DeadLetter struct {
	ID        int64  `json:"id"`
	Event     string `json:"event"` // its position in the log
	Error     string `json:"error"`
	Attempts  int    `json:"attempts"`
	Term      int64  `json:"term"`
	FailedAt  Time   `json:"failed_at"`
	SkippedBy string `json:"skipped_by,omitempty"`
	Replay    bool   `json:"replay"` // a replay was requested, and the leader has not handled it yet

	ReplayBy       string `json:"replay_requested_by,omitempty"`
	ReplayFailedAt Time   `json:"replay_failed_at"` // null if the last replay did not fail, or waits

	DismissedBy string `json:"dismissed_by,omitempty"`
	DismissedAt Time   `json:"dismissed_at"`
}

// NewDeadLetters returns the dead letters of a processor.
func NewDeadLetters(name string, letters []processor.DeadLetter) DeadLetters {
	all := DeadLetters{name, []DeadLetter{}}
	for _, l := range letters {
		all.DeadLetters = append(all.DeadLetters, DeadLetter{
			l.ID, l.Event.String(), l.Error, l.Attempts, l.Term, Time(l.FailedAt), l.SkippedBy, l.Replay, l.ReplayBy, Time(l.ReplayFailedAt), l.DismissedBy, Time(l.DismissedAt),
		})
	}
	return all
}

// ReplayedLetters is the number of dead letters to replay.
type ReplayedLetters struct {
	Processor string `json:"processor"`
	Replaying int    `json:"replaying"`
}

// DismissedLetters is the number of dismissed dead letters.
type DismissedLetters struct {
	Processor string `json:"processor"`
	Dismissed int    `json:"dismissed"`
}

// SkippedEvent is a skipped event.
type SkippedEvent struct {
	Processor string `json:"processor"`
	Skipped   string `json:"skipped"` // its position in the log
}

// RepairedLog is the result of a repair.
type RepairedLog struct {
	Table      string   `json:"table"`
	Events     int64    `json:"events"`     // number of events with new transaction ids
	Processors []string `json:"processors"` // processors with converted cursors; empty if nothing was wrong
}

// NewProcessors returns the list of processors.
func NewProcessors(statuses []processor.Status) Processors {
	all := Processors{[]Processor{}}
	for _, s := range statuses {
		all.Processors = append(all.Processors, NewProcessor(s))
	}
	return all
}

// NewProcessorChanges returns the changes by operators to processors.
func NewProcessorChanges(changes []processor.Change) []OperatorChange {
	all := []OperatorChange{}
	for _, c := range changes {
		all = append(all, OperatorChange{At: Time(c.At), By: c.By, Name: c.Processor, Action: c.Action, Detail: c.Detail})
	}
	return all
}

// NewRepairedLog returns the result of a repair.
func NewRepairedLog(r processor.RepairResult) RepairedLog {
	return RepairedLog{r.Table, r.Events, append([]string{}, r.Processors...)}
}
