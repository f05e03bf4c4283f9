package dashboard

import (
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/incident"
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
	Cause    string     `json:"end_cause,omitempty"`    // as its leader recorded it
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

// blockedRecord is a transaction that keeps the next term of a role from beginning.
type blockedRecord struct {
	Role   string     `json:"role"`
	By     string     `json:"blocked_by"` // names the transaction
	Since  *time.Time `json:"since"`      // null if the dashboard's user may not see it
	Advice string     `json:"advice"`     // SQL that ends it, or lets nodes end it; empty if the waiting node ends it
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

// health is the state of the cluster in one sentence.
type health struct {
	Level    string `json:"level"` // good, warning or critical
	Sentence string `json:"sentence"`
	// Also is further sentences, each after a space: Since is not about them.
	Also string `json:"also,omitempty"`
	// Since is when the problem in Sentence began, if known and relevant. With UpTo, a part of
	// it began later.
	Since *time.Time `json:"since"`
	UpTo  bool       `json:"up_to,omitempty"`
	// Incident is the id of the incident in the sentence, if any.
	Incident string `json:"incident,omitempty"`
	// Job is the processor or schedule in the sentence, if any.
	Job *job `json:"job,omitempty"`
}

const (
	good     = "good"
	warning  = "warning"
	critical = "critical"
)

// job names a processor or a schedule.
type job struct {
	Kind string `json:"kind"` // processor, schedule or retention
	Name string `json:"name"`
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

// readAgain makes all viewers read everything again.
var readAgain = changeRecord{Roles: []roleRecord{}, Events: []eventRecord{}, More: true}

// bounded returns the change, or readAgain if it is too large to publish.
func (c changeRecord) bounded() changeRecord {
	if len(c.Roles) > maxRolesPublished || len(c.Events) > maxEventsPublished {
		return readAgain
	}
	return c
}

// gap is a time without a leader before a term, in seconds; null if it is not known.
type gap struct {
	Without *float64 `json:"without_leader_seconds"` // from when a leader could last act to when the next one could
	Vacant  *float64 `json:"vacant_seconds"`         // of it, while the lock was free
	Silent  *float64 `json:"silent_seconds"`         // since the last sign of life of the previous leader
}

// gapBefore returns the time without a leader before a term. reason is why the previous term
// ended, if known.
func gapBefore(reason tenure.EndReason, t history.Term) gap {
	return gap{record.Known(incident.WithoutLeader(reason, t)), record.Known(t.PrecedingVacancy), record.Known(t.PrecedingSilence)}
}

// failoverRecord is a change of leader: a time without a leader, and the node at its end.
type failoverRecord struct {
	gap

	Kind     string    `json:"kind"` // failover, move or outage
	At       time.Time `json:"time"` // when the new term began, or an outage was over
	Role     string    `json:"role"`
	Term     int64     `json:"term"`
	NodeName string    `json:"node_name"`
	Previous string    `json:"previous"`        // the previous leader, if known
	Reason   string    `json:"end_reason"`      // why its term ended, if known
	Roles    int       `json:"roles,omitempty"` // that an outage stopped
	Incident string    `json:"incident,omitempty"`
}

// The kinds of changes of leaders.
const (
	kindFailover = "failover" // the previous leader was gone
	kindMove     = "move"     // the previous leader gave the role up
	kindOutage   = "outage"   // of the database, which stops all roles
)

// failoversRecord is the content of the page on failovers. The figures are of failovers, and
// not of moves.
type failoversRecord struct {
	Failovers int              `json:"failovers"` // in memory
	Moves     int              `json:"moves"`
	Outages   int              `json:"outages"`
	Day       int              `json:"day"`   // failovers of the last 24 hours
	Since     *time.Time       `json:"since"` // the oldest change in memory
	Median    *gap             `json:"median"`
	P95       *gap             `json:"p95"` // null if there are fewer than leastCases
	P99       *gap             `json:"p99"`
	Max       *gap             `json:"max"`
	Points    [][3]float64     `json:"points"` // [at in ms, seconds without a leader, how many]
	Total     int              `json:"total"`  // rows that match
	Rows      []failoverRecord `json:"rows"`   // newest first
}

// workRecord is the processors and the schedules.
type workRecord struct {
	Shown      bool              `json:"shown"` // whether there is a database connection for them
	Processors []processorRecord `json:"processors"`
	Schedules  []scheduleRecord  `json:"schedules"`
	Retention  []retentionRecord `json:"retention"` // empty until old rows were removed once
}

type processorRecord struct {
	Name        string     `json:"processor"`
	Kind        string     `json:"kind"`
	Role        string     `json:"role"`
	Status      string     `json:"status"` // active, paused or failed
	Led         bool       `json:"led"`
	Busy        bool       `json:"busy"`
	NodeName    string     `json:"node_name"`
	Processed   int64      `json:"processed"`
	Behind      int64      `json:"behind"`
	BehindAsOf  *time.Time `json:"behind_as_of"` // if it was measured more than a minute ago
	Waiting     *time.Time `json:"waiting_since"`
	Errors      int        `json:"errors"`
	LastError   string     `json:"last_error"`
	NextAttempt *time.Time `json:"next_attempt_at"`
	Stuck       string     `json:"stuck_error"` // why it cannot work
	StuckSince  *time.Time `json:"stuck_since"`
	DeadLetters int        `json:"dead_letters"`
	Failing     *string    `json:"failing"` // the event that fails, if known
	Skipped     int        `json:"skipped"` // of the dead letters, by an operator
	Level       string     `json:"level"`   // good, warning or critical
}

type scheduleRecord struct {
	Name        string      `json:"schedule"`
	Status      string      `json:"status"`
	Expression  string      `json:"expression"`
	Zone        string      `json:"timezone"`
	Role        string      `json:"role"`
	Loaded      bool        `json:"loaded"`
	Paused      bool        `json:"paused"`
	Next        *time.Time  `json:"next"`
	Waiting     int64       `json:"waiting"`
	Running     int64       `json:"running"`
	Failures    int64       `json:"failures"`
	FailedInRow int64       `json:"failed_in_row"`
	Problem     string      `json:"problem"`
	RunError    string      `json:"last_run_error"` // of the runs that failed in a row, if known
	Last        *record.Run `json:"last"`
	LastError   string      `json:"last_error"`      // why its leader cannot work
	Ahead       float64     `json:"ahead_seconds"`   // how long it waits for the clock; 0 if it does not
	Overdue     float64     `json:"overdue_seconds"` // 0 if no tick waits for too long
	Level       string      `json:"level"`           // good, warning or critical
}

// retentionRecord is the state of the removal of one kind of old rows.
type retentionRecord struct {
	Rows         string     `json:"rows"` // such as "runs" or "dead letters"
	Keep         float64    `json:"keep_seconds"`
	Swept        *time.Time `json:"swept_at"` // when no old row was left; null if that never was so
	Errors       int64      `json:"errors"`   // in a row
	FailingSince *time.Time `json:"failing_since"`
	LastError    string     `json:"last_error"`
	Late         float64    `json:"late_seconds"` // 0 if no row is kept for too long
	Level        string     `json:"level"`        // good or warning
}

// when returns a time, or nil for the zero time.
func when(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// The actions for users to request.
const (
	stepDown        = "step_down"
	handOver        = "hand_over"
	drain           = "drain"
	undrain         = "undrain"
	forgetNode      = "forget_node"
	rebalanceRoles  = "rebalance"
	pauseProcessor  = "pause_processor"
	resumeProcessor = "resume_processor"
	retryProcessor  = "retry_processor"
	skipEvent       = "skip_event"
	rewindProcessor = "rewind_processor"
	replayLetters   = "replay_dead_letters"
	dismissLetters  = "dismiss_dead_letters"
	triggerSchedule = "trigger_schedule"
	pauseSchedule   = "pause_schedule"
	resumeSchedule  = "resume_schedule"

	silenceAlert     = "silence_alert"
	unsilenceAlert   = "unsilence_alert"
	acknowledgeAlert = "acknowledge_alert"
)

// actionBody is the request for an action.
type actionBody struct {
	Action string    `json:"action"`
	Name   string    `json:"name"` // of the role, processor or schedule
	Term   int64     `json:"term"` // of the role, to end; 0 for the present one
	Node   uuid.UUID `json:"node"` // to hand over to, or to drain
	Force  bool      `json:"force"`

	// Event is the event to skip, or the last one that a rewound processor does not handle again.
	Event string `json:"event"`

	// Letters are the dead letters to replay, or to dismiss; none means all to replay.
	Letters []string `json:"letters"`

	// Of an alert.
	Labels  map[string]string `json:"labels"`
	Seconds int               `json:"seconds"`
	Comment string            `json:"comment"`
}

// outcome is the result of an action.
type outcome struct {
	Done    bool   `json:"done"`   // false: it was requested, and its effect is not visible yet
	Failed  bool   `json:"failed"` // it had its effect, and that failed, as a run of a schedule
	Message string `json:"message"`
}
