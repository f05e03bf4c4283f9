package tenure

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/clocks"
)

// Backend connects the engine to a database. It opens sessions for nodes and answers
// queries without a session. It must be safe for concurrent use.
//
// If the default of [Config].Lease is not 10 s with a Backend, it also has the method
//
//	DefaultLease() time.Duration
//
// A Backend whose Leaders lack the labels of some leaders has this method, which returns
// false. [ElectionConfig].TakeOverAfter is unsupported then:
//
//	LeadersHaveLabels() bool
//
// Programs pass a Backend, for example from package postgres, to [Open] and need not call
// its methods.
type Backend interface {
	// Open opens a session for a node under a new incarnation. ctx bounds the opening
	// only: its end must not affect an open session. An error matching ErrRefused is
	// final; after any other error the engine retries.
	Open(ctx context.Context, options SessionOptions) (Session, error)

	// Leaders reads the leaders of the named roles, or of all roles if none is
	// named, ordered by role. It leaves out vacant roles.
	Leaders(ctx context.Context, roles ...string) ([]Leader, error)

	// Request records a request for the leader of a role, or for a node, and wakes the
	// node. It returns
	//
	//   - ErrNoLeader if the role has no leader,
	//   - ErrUnknownNode if the node or the target is not a live node,
	//   - ErrLastNode if a drain would leave no active node,
	//   - ErrUnsupported for a drain without a registry of nodes.
	//
	// Before it records a hand-over, and for a request with Offer, it asks the session of
	// the target, which answers with SessionOptions.Campaigns. It returns ErrNotActive if
	// the target does not campaign for the role, or sends no answer within a few seconds.
	// The leader keeps the role then.
	Request(ctx context.Context, request Request) error
}

// SessionOptions are the options of a session.
type SessionOptions struct {
	Node        NodeInfo
	Description Description
	UniqueName  bool // return ErrNameTaken while another live node has the name
	Timing      Timing
	Clock       clocks.Clock
	Logger      *slog.Logger

	// PreviousSessionEnd is when the connection of the node's last session ended,
	// on Clock: its roles became vacant then. It is zero if there was no such
	// session or the node does not know.
	PreviousSessionEnd clocks.Instant

	// PreviousFellSilent reports whether the node closed its last session itself because
	// the trust window had ended without an acknowledged heartbeat. Other nodes saw the
	// connection end, as after a crash: the records should name the silence as the reason.
	PreviousFellSilent bool

	// PreviousIncarnation is the incarnation of the node's last session in this process.
	// Trust in it is over and the work of its terms has returned. It is 0 if there was no
	// such session, or while such work runs.
	PreviousIncarnation int64

	// Reopened reports whether this process has opened a session of the node before. The
	// node's unread requests are then still for it. Requests for the node of an earlier
	// process are not for the next process with its id.
	Reopened bool

	// MaySend reports whether the session may send a statement. It is false once
	// trust has ended, because a statement would restart the server's idle timer. A
	// session calls it before each statement and returns ErrSessionLost if it is
	// false.
	MaySend func() bool

	// Extend, if set, gives Open time d from now, or the usual time if d is 0, for
	// a long step such as a migration.
	Extend func(d time.Duration)

	// Campaigns, if set, reports whether the node campaigns for a role now. A session
	// calls it to answer offers of roles, from the goroutine that calls Requests or
	// while Request runs; it does not block. A session without it accepts each offer.
	Campaigns func(role string) bool

	// NodesChanged, if set, must be called when the registry of nodes may have
	// changed without making a role vacant; otherwise Wait returns. It does not
	// block and may be called from any goroutine.
	NodesChanged func()
}

// Session is one incarnation of a node. One goroutine calls its methods, one at a time,
// except Abort. Only Wait takes a context: if a deadline closed the connection, the locks
// would be released while trust is valid.
//
// An error matching ErrSessionLost means the loss of the session: trust ends, and only
// Abort is called afterwards. If the error also matches ErrConnection, the connection has
// ended, and the locks with it. After any other error the session continues.
//
// A Session with its locks on a connection also has the method of [Term.LockConn]. Any
// goroutine may call it:
//
//	LockConn() (syscall.RawConn, error)
//
// If a Session depends on the session of another process, it also has this method. The
// engine calls it after each acknowledged heartbeat. Trust ends at the returned moment on
// SessionOptions.Clock if the heartbeat alone would permit more:
//
//	TrustLimit() clocks.Instant
type Session interface {
	// Incarnation returns the number of this session. It is larger than the number of
	// every earlier session.
	Incarnation() int64

	// TryAcquire tries to acquire roles and returns one result for each, in the same
	// order. The engine does not ask for a role of this session, except to continue one
	// after OutcomePending; its lock must not be locked again. After an error, if the
	// session continues, pending roles are still pending and the others are not held.
	TryAcquire(requests []AcquireRequest) ([]AcquireResult, error)

	// Heartbeat reports to the database that the node is alive and checks that the
	// session still belongs to the node. It reports whether the database may have
	// requests for this node.
	Heartbeat(load Load) (requestsPending bool, err error)

	// Release ends terms and releases their roles, or releases pending roles.
	// It first writes the record, then releases the lock, then sends the
	// notification. After an error a lock may still be held, so the engine ends
	// the session.
	Release(releases []ReleaseRequest) error

	// Requests takes the requests for this node and for the roles of this session. The
	// engine calls it after Wait has returned true, and after a heartbeat has reported
	// requests. If Wait returned for another reason, Requests may return none without a
	// query. Requests returned together with an error count as taken. Other requests for
	// the node are left for the next session, see SessionOptions.Reopened.
	Requests() ([]Request, error)

	// Wait blocks until a role may be vacant or a request may wait (true), ctx
	// ends (false), or the session is lost.
	Wait(ctx context.Context) (changed bool, err error)

	// Close leaves gracefully: it removes the node's record, releases the
	// node's locks, notifies other nodes and closes the connection. The engine
	// calls it when no term is held.
	Close() error

	// Abort closes the connection immediately and makes a running call return.
	// It does not block. It may be called from any goroutine, more than once,
	// and after Close.
	Abort()
}

// AcquireRequest is one role in a call of TryAcquire.
type AcquireRequest struct {
	Role Role
	// Recovering asks for AcquireResult.Holder if another session holds the role.
	Recovering bool
	// YieldFor is how long to leave the role to other nodes after this node stepped down
	// from YieldTerm. It applies while YieldTerm is the latest term and the role is not
	// reserved for this node. The result is then OutcomeHeld with RetryIn.
	YieldFor  time.Duration
	YieldTerm int64
	// NodeName is the name of the leader for the records, if an agent asks for one of its
	// nodes. The session's node keeps the role. It is empty for the session's node itself.
	NodeName string
}

// Outcome is the outcome of one attempt to acquire a role.
type Outcome uint8

// The outcomes.
const (
	OutcomeHeld    Outcome = iota // another session holds the role, or it is reserved
	OutcomeGranted                // the term has begun
	OutcomePending                // this session holds the lock, but the term cannot begin yet
	OutcomeFailed                 // see AcquireResult.Err; this session does not hold the lock
)

// AcquireResult is the result of one AcquireRequest.
type AcquireResult struct {
	Outcome          Outcome
	Term             int64         // granted: larger than every earlier term of the role
	Previous         int64         // granted: the last term of the role, of any node; 0 if there was none
	AcquiredAt       time.Time     // granted: by the database's clock
	PrecedingVacancy time.Duration // granted: how long the role had no leader; negative if unknown
	Holder           uuid.UUID     // held: the node of the last term, if Recovering and known
	Led              bool          // held: another living session leads the role, and nodes are notified of its end; no quick retries
	RetryIn          time.Duration // pending or reserved: a hint when to try again
	Fenced           bool          // pending: waits for transactions of the old term, bounded by LockTimeout
	NotDurable       bool          // granted: until the next heartbeat, a crash of the database may undo the term's record
	Err              error         // failed
}

// ReleaseRequest is one role to release.
type ReleaseRequest struct {
	Role   Role
	Term   int64 // 0 if the term has not begun; a backend may refuse a term that is not the current one
	Reason EndReason
	By     string // the requester, if any
	// Target is the node to reserve the role for, during Reservation.
	Target      uuid.UUID
	Reservation time.Duration
	// Cause says in words why the leader ended the term, for the records: for example the
	// error of its work. It is empty if there is no cause.
	Cause string
	// NextIn is when the next term is due, from the end of this one: when the node
	// campaigns again, or by when completed work should start again. It is 0 if unknown.
	NextIn time.Duration
}

// EndReason is how a term ended, in the record of the role. Package history has the
// reasons.
type EndReason string

// RegistrySession is implemented by a [Session] with a registry of nodes. The
// rules for the methods of Session apply. If it also has the method
//
//	RefreshMembers() ([]Member, error)
//
// [Node.RefreshMembers] calls it.
type RegistrySession interface {
	// WriteDescription replaces this node's description in the registry and
	// notifies other nodes.
	WriteDescription(description Description) error

	// Members reads all nodes in the registry, dead ones included, ordered by
	// incarnation.
	Members() ([]Member, error)

	// Holders reads which nodes lead the named roles or have them reserved,
	// ordered by role. It leaves out other roles.
	Holders(roles []string) ([]RoleHolder, error)
}

// Listener is implemented by a [Backend] that can receive notifications without
// a session.
type Listener interface {
	// Listen calls wake, in this goroutine, when it has begun to listen and
	// whenever an election or a node may have changed. It returns nil when ctx
	// ends, and an error when it cannot continue.
	Listen(ctx context.Context, wake func()) error
}

// RequestKind is the kind of a Request.
type RequestKind string

// The kinds of requests.
const (
	RequestStepDown RequestKind = "step_down"
	RequestHandOver RequestKind = "hand_over"
	RequestDrain    RequestKind = "drain"
	RequestUndrain  RequestKind = "undrain"
)

// Request is a request for the leader of a role or for a node.
type Request struct {
	Kind   RequestKind
	Role   string    // of a step-down or hand-over
	Term   int64     // of a step-down or hand-over: the term to end; 0 for the present one
	Node   uuid.UUID // of a drain or undrain
	Target uuid.UUID // of a hand-over and, optionally, of a drain: the next leader
	Force  bool      // of a drain: also if no other node is active then
	Offer  bool      // of a hand-over: only ask Target whether it campaigns for Role
	By     string    // the requester, for the record
	At     time.Time // by the database's clock; set by the Backend
}
