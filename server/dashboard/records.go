package dashboard

import (
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/program/record"
)

// The states of a role and of a node, in addition to the registry's.
const (
	led    = "led"
	silent = "silent" // its node sent no heartbeat for half a lease, but its lease has not expired
	vacant = "vacant"
	atRest = "at rest" // its work is completed, and its next start is not overdue
	dead   = "dead"
)

// roleRecord is the current state of a role.
type roleRecord struct {
	Name     string     `json:"role"`
	State    string     `json:"state"` // led, silent, vacant or at rest
	Term     int64      `json:"term"`  // the last one
	Node     uuid.UUID  `json:"node"`  // of that term
	NodeName string     `json:"node_name"`
	Agent    string     `json:"agent,omitempty"` // that the node is behind
	Host     string     `json:"hostname,omitempty"`
	Began    time.Time  `json:"began_at"`
	Ended    *time.Time `json:"ended_at"`   // null while it is led
	Reason   string     `json:"end_reason"` // if known
	By       string     `json:"requested_by,omitempty"`
	Without  *float64   `json:"without_leader_seconds"` // before the term began; null if unknown

	// Previous is the node of the previous term, with the reason of its end and the
	// requester, if known.
	Previous       string `json:"previous,omitempty"`
	PreviousReason string `json:"previous_end_reason,omitempty"`
	PreviousBy     string `json:"previous_requested_by,omitempty"`
}

// nodeRecord is the current state of a node. Its status is silent, or the registry's.
type nodeRecord struct {
	record.NodeState

	Led int `json:"led_roles"` // how many roles it leads
}

// The kinds of events.
const (
	eventBegan  = "began"
	eventEnded  = "ended"
	eventNode   = "node"
	eventAction = "action"
	// eventIncident is an incident in place of its events.
	eventIncident = "incident"
)

// eventRecord is an event. Numbers increase in the order in which this process learned of
// the events.
type eventRecord struct {
	Number    uint64    `json:"number"`
	At        time.Time `json:"time"`
	Kind      string    `json:"kind"`
	Role      string    `json:"role,omitempty"`
	Term      int64     `json:"term,omitempty"`
	Node      uuid.UUID `json:"node"`
	NodeName  string    `json:"node_name,omitempty"`
	Reason    string    `json:"end_reason,omitempty"` // of a term
	By        string    `json:"requested_by,omitempty"`
	Without   *float64  `json:"without_leader_seconds,omitempty"` // before a term began
	Status    string    `json:"status,omitempty"`                 // of a node, or the kind of an action
	Previous  string    `json:"previous,omitempty"`
	Detail    string    `json:"detail,omitempty"`
	Incident  string    `json:"incident,omitempty"`  // that it is part of
	Unplanned bool      `json:"unplanned,omitempty"` // of an incident
}

// nowRecord is the cluster at a glance.
type nowRecord struct {
	Health   health       `json:"health"`
	Roles    int          `json:"roles"`
	Led      int          `json:"led"`
	Silent   int          `json:"silent"`
	Vacant   int          `json:"vacant"`
	AtRest   int          `json:"at_rest"`
	Living   int          `json:"living"`   // nodes
	Firing   int          `json:"firing"`   // alerts that are not silenced
	Silenced int          `json:"silenced"` // alerts that fire
	Nodes    []nodeRecord `json:"nodes"`    // at most maxNodesTold
	AllNodes int          `json:"all_nodes"`
	Clock    time.Time    `json:"clock"` // the database's
	// Blocked are transactions that keep roles vacant.
	Blocked []blockedRecord `json:"blocked"`
	// UnreadSince is when the database was read last, or should have been, if it
	// cannot be read.
	UnreadSince *time.Time `json:"unread_since"`
	// The same for processors and schedules, and for the alerts, which can be unreadable
	// alone.
	WorkUnreadSince   *time.Time `json:"work_unread_since"`
	AlertsUnreadSince *time.Time `json:"alerts_unread_since"`
}

// changeRecord is the changes since the last read.
type changeRecord struct {
	Roles  []roleRecord  `json:"roles"`
	Events []eventRecord `json:"events"`
	More   bool          `json:"more,omitempty"` // too many changes to publish: read again

	missing bool // the row of a role's last term has gone
	rewound bool // published terms no longer exist in the database
}

// Bounds on the records published to all viewers. A page reads further ones itself.
const (
	maxNodesTold       = 300
	maxDeadTold        = 50 // of them, beside live ones
	maxRolesPublished  = 100
	maxEventsPublished = 200
)
