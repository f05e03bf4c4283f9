package tenure

import (
	"context"
	"log/slog"
	"syscall"
	"time"

	"github.com/google/uuid"
)

// Backend is the seam between the engine and a database. A Backend opens
// sessions for nodes and answers what people ask; the questions do not go
// through a session. It must be safe for concurrent use.
//
// Programs use [Open] with a Backend from package postgres and need not call
// its methods.
type Backend interface {
	// Open opens a session for a node under a fresh incarnation. The context
	// bounds the opening only: its end afterwards must not touch the session.
	// An error that matches ErrRefused is final; any other may pass.
	Open(ctx context.Context, opening SessionOptions) (Session, error)

	// Leaders reads the leaders of the named roles, or of all roles if none is
	// named, ordered by role. A role that nobody leads is left out.
	Leaders(ctx context.Context, roles ...string) ([]Leader, error)

	// Request records a request for the leader of a role, or for a node, and
	// wakes it. It returns ErrNoLeader if nobody leads the role, ErrUnknownNode
	// if the target or the node is not a living node, ErrLastNode if a drain
	// would leave no other node in service, and ErrUnsupported if there is no
	// registry of nodes to drain.
	Request(ctx context.Context, request Request) error
}

// LeaseDefaulter is implemented by a [Backend] whose nodes have another lease
// than 10 s if their [Config] names none.
type LeaseDefaulter interface {
	DefaultLease() time.Duration
}

// SessionOptions is what a Backend is told about the session to open.
type SessionOptions struct {
	Node        NodeInfo
	Description Description
	UniqueName  bool // refuse with ErrNameTaken while another living node has the name
	Timing      Timing
	Clock       Clock
	Logger      *slog.Logger

	// PreviousSessionEnd is when the connection of the node's session before this one
	// ended, on Clock: from then on its roles were vacant, unless others took them.
	// It is zero if there was none, or if only the database knows.
	PreviousSessionEnd Instant

	// MaySend reports whether the session may still send anything. It turns
	// false, for ever, when trust ends: from then on nothing may restart the
	// server's idle timer. A session asks before each statement and returns
	// ErrSessionLost instead of sending.
	MaySend func() bool

	// Extend, if set, lets Open take up to d from now, or as long as usual from
	// now if d is 0: for a step that may take long, like a migration.
	Extend func(d time.Duration)

	// NodesChanged, if set, is to be called when the registry of nodes may have
	// changed in a way that makes no role vacant; where it may, Wait returns.
	// It does not block.
	NodesChanged func()
}

// NodeInfo says who a node is.
type NodeInfo struct {
	ID   uuid.UUID
	Name string
	Host string
}

// Timing holds the durations of the protocol; see [Config] for their meaning.
type Timing struct {
	Lease           time.Duration
	RefreshInterval time.Duration
	Margin          time.Duration
	CheckInterval   time.Duration
	LockTimeout     time.Duration
	FenceTimeout    time.Duration
	Settle          time.Duration
	FailoverWait    time.Duration
}

// Session is one incarnation of a node. One goroutine calls its methods, one at
// a time, except Abort. Apart from Wait no method takes a context: a deadline
// that closes the connection would free the locks while trust still runs.
//
// A method that returns an error matching ErrSessionLost has lost the session:
// trust ends at once, and nothing but Abort is called afterwards. If the error
// matches ErrConnection too, the connection itself is gone, and the locks with
// it. After any other error the session goes on.
type Session interface {
	// Incarnation is the number of this session, larger than that of every
	// session before it.
	Incarnation() int64

	// TryAcquire tries to take roles and returns one Attempt for each, in the
	// same order. The engine does not ask for a role that this session holds,
	// except for one whose last Attempt was Waiting, to continue it. A role
	// whose lock the session holds is never locked again. After an error that
	// does not end the session, the roles that were Waiting still are, and the
	// others are not held.
	TryAcquire(candidates []AcquireRequest) ([]AcquireResult, error)

	// Heartbeat proves to the database that the node lives and to the node
	// that the session is still its own.
	Heartbeat(load Load) (HeartbeatResult, error)

	// Release ends terms and frees their roles, or gives up roles that are
	// Waiting: first the record, then the lock, then the news. An error means
	// that a lock may still be held: the engine gives the session up.
	Release(releases []ReleaseRequest) error

	// Requests takes the requests that wait for roles this session leads.
	Requests() ([]Request, error)

	// Wait blocks until something may have changed (then it returns true: a
	// role may be vacant, a request may wait), until the context ends (false,
	// nil), or until the session is lost.
	Wait(ctx context.Context) (changed bool, err error)

	// Close leaves politely: it removes the node's record, frees the node's
	// locks, tells the others and closes the connection. It is called with no
	// term held.
	Close() error

	// Abort closes the connection at once and makes a call in progress return.
	// It may be called from any goroutine, also more than once and after Close,
	// and does not block.
	Abort()
}

// LockConnProvider is implemented by a [Session] whose locks live as long as its
// connection does.
type LockConnProvider interface {
	// LockConn returns the connection that keeps the locks; see [Term.LockConn].
	// Unlike the methods of Session it may be called from any goroutine.
	LockConn() (syscall.RawConn, error)
}

// AcquireRequest is one role in a call of TryAcquire.
type AcquireRequest struct {
	Role Role
	// Recovering asks to fill Attempt.Holder if the role is held by another
	// session.
	Recovering bool
}

// Outcome is the result of one attempt to take a role.
type Outcome uint8

// The outcomes.
const (
	OutcomeHeld    Outcome = iota // another session holds the role, or it is reserved
	OutcomeGranted                // the term has begun
	OutcomePending                // the lock is held, the term cannot begin yet
	OutcomeFailed                 // see Attempt.Err; the session does not hold the lock
)

// AcquireResult is what became of one AcquireRequest.
type AcquireResult struct {
	Outcome          Outcome
	Term             int64         // if Granted: larger than every term of the role before
	Previous         int64         // if Granted: the last term of the role before, of whichever node; 0 if there was none
	AcquiredAt       time.Time     // if Granted: by the database's clock
	PrecedingVacancy time.Duration // if Granted: how long nobody had led before; negative if unknown
	Holder           uuid.UUID     // if Busy and asked for: the node of the last term, if known
	RetryIn          time.Duration // if Waiting or reserved: when to try again; a hint
	Fenced           bool          // if Waiting: for transactions of the old term, which LockTimeout bounds
	Err              error         // if Failed
}

// ReleaseRequest is one role to give up.
type ReleaseRequest struct {
	Role   Role
	Term   int64 // 0 if the term has not begun
	Reason EndReason
	By     string // who asked for it, if that is known
	// Target reserves the role for this node until Reservation has passed.
	Target      uuid.UUID
	Reservation time.Duration
}

// EndReason says how a term ended, in the record of the role.
type EndReason string

// The reasons for the end of a term.
const (
	EndResigned      EndReason = "resigned"       // by the leader itself
	EndSteppedDown   EndReason = "stepped_down"   // by the leader, as it was asked to
	EndHandedOver    EndReason = "handed_over"    // in favor of a named node
	EndShutdown      EndReason = "shutdown"       // the election or its node stopped
	EndCrashed       EndReason = "crashed"        // the session ended; found by the successor, or by its node in a new session
	EndLeaseExpired  EndReason = "lease_expired"  // the session fell silent; found by the successor
	EndServerChanged EndReason = "server_changed" // the server restarted or is another one
)

// HeartbeatResult is what a heartbeat brings back.
type HeartbeatResult struct {
	RequestsPending bool // requests may wait for this node
}

// Load is how busy a node is, as its heartbeats tell the others.
type Load struct {
	Connections int     // open connections of clients
	Jobs        int     // jobs in progress
	InFlight    int     // pieces of work that a drain would wait for
	CPU         float64 // percent
	Memory      float64 // percent
}

// Mean returns the load as a number from 0 to 1: the mean of CPU and memory.
func (l Load) Mean() float64 { return min(1, max(0, (l.CPU+l.Memory)/200)) }

// RequestKind is what a Request asks for.
type RequestKind string

// The kinds of requests.
const (
	RequestStepDown RequestKind = "step_down"
	RequestHandOver RequestKind = "hand_over"
	RequestDrain    RequestKind = "drain"
	RequestUndrain  RequestKind = "undrain"
)

// Request asks the leader of a role, or a node, for something.
type Request struct {
	Kind   RequestKind
	Role   string    // of a step-down or hand-over
	Node   uuid.UUID // of a drain or undrain: the node that is asked
	Target uuid.UUID // of a hand-over, or of a drain if given: the node to lead next
	Force  bool      // of a drain: also if no other node is in service then
	By     string    // who asks, for the record
	At     time.Time // by the database's clock; set by the Backend
}
