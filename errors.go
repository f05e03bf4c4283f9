package tenure

import (
	"errors"
	"fmt"

	"github.com/exactly-one/tenure/internal/sentinel"
)

// Categories of errors. Every error of this module matches [ErrTenure] under errors.Is,
// and most match one category.
var (
	// ErrTenure is the base of all errors of this module.
	ErrTenure = errors.New("tenure")
	// ErrConnection: a database connection could not be established or kept.
	ErrConnection = sentinel.New(ErrTenure, "connection failed")
	// ErrLock: a role could not be acquired or released.
	ErrLock = sentinel.New(ErrTenure, "lock failed")
	// ErrShutdown: a shutdown, drain or step-down did not finish in time.
	ErrShutdown = sentinel.New(ErrTenure, "shutdown failed")
	// ErrRefused: the backend must not be used, and a retry does not help.
	// The message says what to change.
	ErrRefused = sentinel.New(ErrTenure, "refused")
	// ErrTermEnded: a term has ended. It matches the cause of every term's context.
	ErrTermEnded = sentinel.New(ErrTenure, "the term has ended")
)

// Reasons why a term ended: the cause of its context matches one of them. All
// match [ErrTermEnded].
var (
	// ErrTrustExpired: no heartbeat was acknowledged in time.
	ErrTrustExpired = sentinel.New(ErrTermEnded, "the trust window ended without an acknowledged heartbeat")
	// ErrSessionLost: the session with the database ended or no longer belongs to
	// this node.
	ErrSessionLost = sentinel.New(ErrTermEnded, "the session was lost")
	// ErrSuperseded: a newer incarnation of this node exists, or the session was
	// reset. It matches ErrSessionLost.
	ErrSuperseded = sentinel.New(ErrSessionLost, "the session is superseded")
	// ErrResigned: the leader gave up the term.
	ErrResigned = sentinel.New(ErrTermEnded, "resigned")
	// ErrSteppedDown: the leader was asked to step down.
	ErrSteppedDown = sentinel.New(ErrResigned, "stepped down")
	// ErrHandedOver: the leader handed the role over to a named node.
	ErrHandedOver = sentinel.New(ErrResigned, "handed over")
	// ErrStopping: the election or the node is being shut down.
	ErrStopping = sentinel.New(ErrResigned, "shutting down")
)

// Errors of single operations.
var (
	// ErrNotLeader: the operation needs a valid term and this node has none.
	ErrNotLeader = sentinel.New(ErrTenure, "not the leader")
	// ErrNoLeader: the role has no leader.
	ErrNoLeader = sentinel.New(ErrTenure, "the role has no leader")
	// ErrHeld: another node holds the role, or another caller on this node, or it is
	// reserved.
	ErrHeld = sentinel.New(ErrLock, "the role is held")
	// ErrLockTimeout: an attempt to acquire a role took longer than LockTimeout.
	ErrLockTimeout = sentinel.New(ErrLock, "the attempt to acquire the role timed out")
	// ErrKeyMismatch: another node uses another lock key for the same name.
	ErrKeyMismatch = sentinel.New(ErrLock, "the role has another lock key")
	// ErrFenced: the term has ended or a newer one exists. The transaction was, or
	// must be, rolled back.
	ErrFenced = sentinel.New(ErrTenure, "fenced: the term is no longer valid")
	// ErrWorkRunning: work under a term has not returned, so the role is not
	// released.
	ErrWorkRunning = sentinel.New(ErrShutdown, "the work has not returned")
	// ErrDrainCanceled: the node was undrained before it was drained.
	ErrDrainCanceled = sentinel.New(ErrShutdown, "the node was undrained")
	// ErrInvalidRole: the name of a role is invalid.
	ErrInvalidRole = sentinel.New(ErrTenure, "invalid role")
	// ErrInvalidConfig: a setting is out of range or contradicts another.
	ErrInvalidConfig = sentinel.New(ErrTenure, "invalid configuration")
	// ErrDuplicateRole: the node already has an election for the role.
	ErrDuplicateRole = sentinel.New(ErrTenure, "the node already has an election for this role")
	// ErrAlreadyStarted: Start, Run or Campaign has already started the election.
	ErrAlreadyStarted = sentinel.New(ErrTenure, "the election is already started")
	// ErrStopped: the election has stopped.
	ErrStopped = sentinel.New(ErrTenure, "the election has stopped")
	// ErrClosed: the node is closed.
	ErrClosed = sentinel.New(ErrStopped, "the node is closed")
	// ErrNotActive: the node does not campaign for the role. It is joining or draining,
	// has NoLeader, does not have a required label or node role, or leads as many roles of
	// the election's group as the limit permits.
	ErrNotActive = sentinel.New(ErrLock, "the node is not active")
	// ErrUnsupported: the backend cannot do this, for example because it has no
	// registry of nodes.
	ErrUnsupported = sentinel.New(ErrTenure, "the backend does not support this")
	// ErrNameTaken: another live node has the name, and names must be unique.
	ErrNameTaken = sentinel.New(ErrRefused, "another live node has this name")
	// ErrLastNode: no other node is active.
	ErrLastNode = sentinel.New(ErrTenure, "no other node is active")
	// ErrUnknownNode: no live node has this id or name.
	ErrUnknownNode = sentinel.New(ErrTenure, "no such node")
)

// Done is returned by the function of [Election.Run] to resign and to end Run
// without an error. The text of an error that wraps Done becomes the recorded cause.
//
// If such an error has the method
//
//	NextWithin() time.Duration
//
// the work is completed until it is started again: the role is at rest then, and not
// vacant. With a positive result, it counts as vacant if no term begins within that time.
var Done = errors.New("done")

// withDetail wraps cause and detail unless one of them matches the other.
func withDetail(cause, detail error) error {
	switch {
	case detail == nil || errors.Is(cause, detail):
		return cause
	case errors.Is(detail, cause):
		return detail
	}
	return fmt.Errorf("%w: %w", cause, detail)
}

// onlySessionLoss returns err if it ends the session, and nil otherwise.
func onlySessionLoss(err error) error {
	if errors.Is(err, ErrSessionLost) {
		return err
	}
	return nil
}
