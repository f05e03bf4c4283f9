package tenure

import "errors"

// Categories of errors. Every error that this module creates matches [ErrTenure]
// under errors.Is, and most match one category.
var (
	// ErrTenure is the base of all errors of this module.
	ErrTenure = errors.New("tenure")
	// ErrConnection: a database connection could not be established or kept.
	ErrConnection = derive(ErrTenure, "connection failed")
	// ErrDatabase: the database responds but cannot do what was asked. Retrying can
	// succeed once the cause is gone.
	ErrDatabase = derive(ErrTenure, "the database failed")
	// ErrLock: a role could not be acquired or released.
	ErrLock = derive(ErrTenure, "lock failed")
	// ErrShutdown: a shutdown, drain or step-down did not finish in time.
	ErrShutdown = derive(ErrTenure, "shutdown failed")
	// ErrRefused: the backend must not be used as it is, and a retry does not help.
	// The message says what to change.
	ErrRefused = derive(ErrTenure, "refused")
	// ErrTermEnded: a term has ended. It matches the cause of every term's context.
	ErrTermEnded = derive(ErrTenure, "the term has ended")
)

// Refusals by a backend. All match [ErrRefused].
var (
	// ErrPooled: the connection goes through a pooler, where session locks
	// protect nothing.
	ErrPooled = derive(ErrRefused, "connected through a pooler")
	// ErrServerTooOld: the server is older than PostgreSQL 14.
	ErrServerTooOld = derive(ErrRefused, "the server is too old")
	// ErrInRecovery: the server is a standby and takes no writes.
	ErrInRecovery = derive(ErrRefused, "the server is in recovery")
	// ErrLocksIgnored: the server accepts advisory locks but they exclude nobody.
	ErrLocksIgnored = derive(ErrRefused, "advisory locks do nothing on this server")
	// ErrSchema: the schema is missing, damaged, or of another version.
	ErrSchema = derive(ErrRefused, "the schema does not fit")
	// ErrPrivilege: the database user lacks a privilege.
	ErrPrivilege = derive(ErrRefused, "a privilege is missing")
	// ErrWrongMode: the installation elects by leases and this backend by
	// sessions, or the other way around.
	ErrWrongMode = derive(ErrRefused, "the installation has another mode")
)

// Failures of a database that may pass. All match [ErrDatabase].
var (
	// ErrBusy: another program has locked the rows, or the file, for too long.
	ErrBusy = derive(ErrDatabase, "the database is locked by another")
	// ErrReadOnly: the database, or its file, takes no writes.
	ErrReadOnly = derive(ErrDatabase, "the database is read-only")
	// ErrDiskFull: there is no room left to write.
	ErrDiskFull = derive(ErrDatabase, "the disk is full")
	// ErrInstallationInUse: nodes live under the installation that would be
	// created, removed or changed.
	ErrInstallationInUse = derive(ErrDatabase, "the installation is in use")
)

// Reasons why a term ended: the cause of its context matches one of them. All
// match [ErrTermEnded].
var (
	// ErrTrustExpired: no heartbeat was acknowledged in time.
	ErrTrustExpired = derive(ErrTermEnded, "the trust window ended without an acknowledged heartbeat")
	// ErrSessionLost: the session with the database ended or no longer belongs to
	// this node.
	ErrSessionLost = derive(ErrTermEnded, "the session was lost")
	// ErrSuperseded: a newer incarnation of this node exists, or the session was
	// reset. It matches ErrSessionLost.
	ErrSuperseded = derive(ErrSessionLost, "the session is superseded")
	// ErrResigned: the leader gave up the term.
	ErrResigned = derive(ErrTermEnded, "resigned")
	// ErrSteppedDown: the leader was asked to step down.
	ErrSteppedDown = derive(ErrResigned, "stepped down")
	// ErrHandedOver: the leader handed the role over to a named node.
	ErrHandedOver = derive(ErrResigned, "handed over")
	// ErrStopping: the election or the node is being shut down.
	ErrStopping = derive(ErrResigned, "shutting down")
)

// Errors of single operations.
var (
	// ErrNotLeader: the operation needs a valid term and this node has none.
	ErrNotLeader = derive(ErrTenure, "not the leader")
	// ErrNoLeader: the role has no leader.
	ErrNoLeader = derive(ErrTenure, "the role has no leader")
	// ErrHasLeader: the operation needs a vacant role.
	ErrHasLeader = derive(ErrTenure, "the role has a leader")
	// ErrUnknownRole: no node has ever been a candidate for the role.
	ErrUnknownRole = derive(ErrTenure, "no node has ever been a candidate for the role")
	// ErrHeld: another node holds the role, or it is reserved.
	ErrHeld = derive(ErrLock, "another node holds the role")
	// ErrLockTimeout: an attempt to acquire a role took longer than LockTimeout.
	ErrLockTimeout = derive(ErrLock, "the attempt to acquire the role timed out")
	// ErrLockTableFull: the server's lock table has no room for more roles.
	ErrLockTableFull = derive(ErrLock, "the server's lock table is full")
	// ErrKeyMismatch: another node uses another lock key for the same name.
	ErrKeyMismatch = derive(ErrLock, "the role has another lock key")
	// ErrFenced: the term has ended or a newer one exists. The transaction was, or
	// must be, rolled back.
	ErrFenced = derive(ErrTenure, "fenced: the term is no longer valid")
	// ErrWorkRunning: work under a term has not returned, so the role is not
	// released.
	ErrWorkRunning = derive(ErrShutdown, "the work has not returned")
	// ErrDrainCanceled: the node was undrained before it was drained.
	ErrDrainCanceled = derive(ErrShutdown, "the node was undrained")
	// ErrInvalidRole: the name of a role is invalid.
	ErrInvalidRole = derive(ErrTenure, "invalid role")
	// ErrInvalidConfig: a setting is out of range or contradicts another.
	ErrInvalidConfig = derive(ErrTenure, "invalid configuration")
	// ErrDuplicateRole: the node already has an election for the role.
	ErrDuplicateRole = derive(ErrTenure, "the node already has an election for this role")
	// ErrAlreadyStarted: Start, Run or Campaign has already started the election.
	ErrAlreadyStarted = derive(ErrTenure, "the election is already started")
	// ErrStopped: the election has stopped.
	ErrStopped = derive(ErrTenure, "the election has stopped")
	// ErrClosed: the node is closed.
	ErrClosed = derive(ErrStopped, "the node is closed")
	// ErrNotActive: the node is joining or draining, so it does not campaign.
	ErrNotActive = derive(ErrLock, "the node is not active")
	// ErrUnsupported: the backend cannot do this, for example because it has no
	// registry of nodes.
	ErrUnsupported = derive(ErrTenure, "the backend does not support this")
	// ErrNameTaken: another live node has the name, and names must be unique.
	ErrNameTaken = derive(ErrRefused, "another live node has this name")
	// ErrLastNode: no other node is active.
	ErrLastNode = derive(ErrTenure, "no other node is active")
	// ErrUnknownNode: no live node has this id or name.
	ErrUnknownNode = derive(ErrTenure, "no such node")
)

// Done is returned by the function of [Election.Run] to resign and to end Run
// without an error.
var Done = errors.New("done")

// derived is an error that matches its parent and all ancestors.
type derived struct {
	parent error
	text   string
}

func derive(parent error, text string) error { return &derived{parent, text} }

func (e *derived) Error() string { return e.text }
func (e *derived) Unwrap() error { return e.parent }
