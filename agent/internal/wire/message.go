// Package wire is the protocol between an agent and the nodes of its host.
//
// A connection carries frames: a length of 4 bytes, big-endian, and a JSON object. The
// node sends a Call and waits for its Answer before it sends the next one. The agent also
// sends events, which are Answers with Event set, at any time. The first call of a
// connection is "open" or a query. "open" makes the connection a session; after a query
// the agent closes it. Moments are readings of CLOCK_BOOTTIME, the common clock of all
// processes of a host.
package wire

import (
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// Version is the version of the protocol. Agent and node must have the same one.
const Version = 1

// Limits of the protocol.
const (
	MaxFrame = 4 << 20
	MaxRoles = 1000 // in one call
)

// The operations of a call.
const (
	OpOpen      = "open"
	OpAcquire   = "acquire"
	OpHeartbeat = "heartbeat"
	OpRelease   = "release"
	OpRequests  = "requests"
	OpClose     = "close"
	OpLeaders   = "leaders"
	OpRequest   = "request"
)

// The events.
const (
	EventWake = "wake" // a role may be vacant, or a request waits
	EventLost = "lost" // the session is lost; Answer.Err says why
)

// Call is a message of a node.
type Call struct {
	Version  int             `json:"v"`
	Op       string          `json:"op"`
	Open     *Open           `json:"open,omitempty"`
	Acquire  []Acquire       `json:"acquire,omitempty"`
	Load     *tenure.Load    `json:"load,omitempty"`
	Releases []Release       `json:"releases,omitempty"`
	Roles    []string        `json:"roles,omitempty"`
	Request  *tenure.Request `json:"request,omitempty"`
}

// Open opens a session.
type Open struct {
	Node         tenure.NodeInfo `json:"node"`
	Lease        time.Duration   `json:"lease"`
	Refresh      time.Duration   `json:"refresh"`
	Settle       time.Duration   `json:"settle"`
	FailoverWait time.Duration   `json:"failover_wait"`
	Grace        time.Duration   `json:"grace,omitempty"` // see agent.Backend.WithGrace

	// How to reach the node, as in its tenure.Description.
	Address  string            `json:"address,omitempty"`
	HTTPPort int               `json:"http_port,omitempty"`
	GRPCPort int               `json:"grpc_port,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
}

// Acquire is a tenure.AcquireRequest.
type Acquire struct {
	Role       Role          `json:"role"`
	Recovering bool          `json:"recovering,omitempty"`
	YieldFor   time.Duration `json:"yield_for,omitempty"`
	YieldTerm  int64         `json:"yield_term,omitempty"`
}

// Release is a tenure.ReleaseRequest.
type Release struct {
	Role        Role             `json:"role"`
	Term        int64            `json:"term"`
	Reason      tenure.EndReason `json:"reason"`
	By          string           `json:"by,omitempty"`
	Target      uuid.UUID        `json:"target"`
	Reservation time.Duration    `json:"reservation,omitempty"`
	Cause       string           `json:"cause,omitempty"`
	NextIn      time.Duration    `json:"next_in,omitempty"`
}

// Answer is a message of the agent.
type Answer struct {
	Event    string           `json:"event,omitempty"`
	Err      *Error           `json:"err,omitempty"`
	Opened   *Opened          `json:"opened,omitempty"`
	Results  []Result         `json:"results,omitempty"`
	Until    Moment           `json:"until,omitempty"` // when the agent's own trust ends
	Pending  bool             `json:"pending,omitempty"`
	Requests []tenure.Request `json:"requests,omitempty"`
	Leaders  []tenure.Leader  `json:"leaders,omitempty"`
}

// Opened is the answer to Open.
type Opened struct {
	Incarnation int64  `json:"incarnation"`
	Now         Moment `json:"now"` // the agent's clock
}

// Result is a tenure.AcquireResult.
type Result struct {
	Outcome          tenure.Outcome `json:"outcome"`
	Term             int64          `json:"term,omitempty"`
	Previous         int64          `json:"previous,omitempty"`
	AcquiredAt       time.Time      `json:"acquired_at"`
	PrecedingVacancy time.Duration  `json:"preceding_vacancy,omitempty"`
	Holder           uuid.UUID      `json:"holder"`
	Led              bool           `json:"led,omitempty"`
	RetryIn          time.Duration  `json:"retry_in,omitempty"`
	Fenced           bool           `json:"fenced,omitempty"`
	Err              *Error         `json:"err,omitempty"`
}

// NewResult encodes the result of an attempt. NotDurable stays with the agent, because the
// agent sends the heartbeat.
func NewResult(r tenure.AcquireResult) Result {
	return Result{
		Outcome: r.Outcome, Term: r.Term, Previous: r.Previous, AcquiredAt: r.AcquiredAt, PrecedingVacancy: r.PrecedingVacancy,
		Holder: r.Holder, Led: r.Led, RetryIn: r.RetryIn, Fenced: r.Fenced, Err: NewError(r.Err),
	}
}

// Decode returns the result of an attempt.
func (r Result) Decode() tenure.AcquireResult {
	return tenure.AcquireResult{
		Outcome: r.Outcome, Term: r.Term, Previous: r.Previous, AcquiredAt: r.AcquiredAt, PrecedingVacancy: r.PrecedingVacancy,
		Holder: r.Holder, Led: r.Led, RetryIn: r.RetryIn, Fenced: r.Fenced, Err: r.Err.Decode(),
	}
}

// Role is a tenure.Role.
type Role struct {
	Name string          `json:"name"`
	Key  *tenure.LockKey `json:"key,omitempty"` // nil if it is derived from the name
}

// NewRole encodes a role.
func NewRole(role tenure.Role) Role {
	key := role.LockKey(uuid.Nil)
	if key != role.LockKey(uuid.Max) { // depends on the installation
		return Role{Name: role.Name()}
	}
	return Role{Name: role.Name(), Key: &key}
}

// Decode returns the role, or an error matching tenure.ErrInvalidRole.
func (r Role) Decode() (tenure.Role, error) {
	role := tenure.NamedRole(r.Name)
	switch {
	case r.Key == nil:
	case r.Key.Pair:
		role = tenure.KeyPairRole(int32(r.Key.Key), r.Key.Key2)
	default:
		role = role.WithKey(r.Key.Key)
	}
	return role, role.Validate()
}
