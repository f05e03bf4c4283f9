package tenure

import "errors"

// The categories of errors. Every error that this module returns for a reason
// of its own matches [ErrTenure] under errors.Is, and most match one category.
var (
	// ErrTenure is the base of all errors of this module.
	ErrTenure = errors.New("tenure")
	// ErrConnection: a database connection could not be established or kept.
	ErrConnection = derive(ErrTenure, "connection failed")
	// ErrDatabase: the database answers but cannot do what it must just now. It
	// passes when its cause does.
	ErrDatabase = derive(ErrTenure, "the database failed")
	// ErrLock: a role could not be taken or released.
	ErrLock = derive(ErrTenure, "lock failed")
	// ErrShutdown: stopping did not finish in time.
	ErrShutdown = derive(ErrTenure, "shutdown failed")
	// ErrRefused: the backend must not be used as it is, and trying again does
	// not help; the message says what to change.
	ErrRefused = derive(ErrTenure, "refused")
	// ErrTermEnded is the category of every reason for which a term ends; it
	// matches context.Cause of a term's context.
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

// Reasons why a term ended, as found with errors.Is in context.Cause of the
// term's context. All match [ErrTermEnded].
var (
	// ErrTrustExpired: no heartbeat was acknowledged in time.
	ErrTrustExpired = derive(ErrTermEnded, "the trust window ended without an acknowledged heartbeat")
	// ErrSessionLost: the session with the database ended or is not this
	// node's any more. A session returns it when it must be given up.
	ErrSessionLost = derive(ErrTermEnded, "the session was lost")
	// ErrSuperseded: a newer incarnation of this node exists, or somebody reset
	// the session. It matches ErrSessionLost.
	ErrSuperseded = derive(ErrSessionLost, "the session is superseded")
	// ErrResigned: the term was given up voluntarily.
	ErrResigned = derive(ErrTermEnded, "resigned")
	// ErrSteppedDown: somebody asked the leader to step down.
	ErrSteppedDown = derive(ErrResigned, "stepped down")
	// ErrHandedOver: the term was given up in favor of a named node.
	ErrHandedOver = derive(ErrResigned, "handed over")
	// ErrStopping: the election or the node is being shut down.
	ErrStopping = derive(ErrResigned, "shutting down")
)

// Errors of single operations.
var (
	// ErrNotLeader: the operation needs a trusted term and there is none.
	ErrNotLeader = derive(ErrTenure, "not the leader")
	// ErrNoLeader: nobody leads the role.
	ErrNoLeader = derive(ErrTenure, "nobody leads the role")
	// ErrHasLeader: the operation needs a role that nobody leads.
	ErrHasLeader = derive(ErrTenure, "the role is led")
	// ErrUnknownRole: nobody has ever stood for the role here.
	ErrUnknownRole = derive(ErrTenure, "nobody has stood for the role")
	// ErrHeld: the role is held by somebody else.
	ErrHeld = derive(ErrLock, "the role is held by another")
	// ErrLockTimeout: an attempt to take a role took longer than LockTimeout.
	ErrLockTimeout = derive(ErrLock, "taking the role took too long")
	// ErrLockTableFull: the server's lock table has no room for more roles.
	ErrLockTableFull = derive(ErrLock, "the server's lock table is full")
	// ErrKeyMismatch: another node uses another lock key for the same name.
	ErrKeyMismatch = derive(ErrLock, "the role has another lock key")
	// ErrFenced: a newer term exists, or this one has ended; the transaction
	// was or must be rolled back.
	ErrFenced = derive(ErrTenure, "fenced: the term does not stand any more")
	// ErrWorkRunning: work done under a term has not returned yet, so the role
	// was not released.
	ErrWorkRunning = derive(ErrShutdown, "the work has not returned")
	// ErrDrainCanceled: the node was taken back into service before it was drained.
	ErrDrainCanceled = derive(ErrShutdown, "the node was taken back into service")
	// ErrInvalidRole: a role's name cannot be used.
	ErrInvalidRole = derive(ErrTenure, "invalid role")
	// ErrInvalidConfig: a setting is out of range or contradicts another.
	ErrInvalidConfig = derive(ErrTenure, "invalid configuration")
	// ErrDuplicateRole: the node already has an election for the role.
	ErrDuplicateRole = derive(ErrTenure, "the node already stands for this role")
	// ErrAlreadyStarted: the election is already driven by Start, Run or Campaign.
	ErrAlreadyStarted = derive(ErrTenure, "the election is already started")
	// ErrStopped: the election stopped, by itself or because it was asked to.
	ErrStopped = derive(ErrTenure, "the election has stopped")
	// ErrClosed: the node is closed.
	ErrClosed = derive(ErrStopped, "the node is closed")
	// ErrNotActive: the node is joining or draining, so it stands for no role.
	ErrNotActive = derive(ErrLock, "the node is not active")
	// ErrUnsupported: the backend cannot do this, for example keep a registry of
	// nodes.
	ErrUnsupported = derive(ErrTenure, "the backend does not support this")
	// ErrNameTaken: another living node has the name, and names must be unique.
	ErrNameTaken = derive(ErrRefused, "another living node has this name")
	// ErrLastNode: no other node would be in service.
	ErrLastNode = derive(ErrTenure, "no other node is in service")
	// ErrUnknownNode: no living node has this id or name.
	ErrUnknownNode = derive(ErrTenure, "no such node")
)

// Done is what the function given to [Election.Run] returns to resign and to end
// Run without an error.
var Done = errors.New("done")

// derived is a sentinel with a parent: errors.Is finds the whole chain.
type derived struct {
	parent error
	text   string
}

func derive(parent error, text string) error { return &derived{parent, text} }

func (e *derived) Error() string { return e.text }
func (e *derived) Unwrap() error { return e.parent }
