// Package dberr defines the common errors of the SQL databases of packages postgres and
// lease: reasons to refuse a database, and passing failures. All match [tenure.ErrTenure].
package dberr

import (
	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/sentinel"
)

// Reasons why a database must not be used. All match [tenure.ErrRefused].
var (
	// ErrPooled: the connection goes through a pooler of server sessions or transactions.
	ErrPooled = sentinel.New(tenure.ErrRefused, "connected through a pooler")
	// ErrServerTooOld: the server is older than the oldest supported version.
	ErrServerTooOld = sentinel.New(tenure.ErrRefused, "the server is too old")
	// ErrInRecovery: the server is a standby and accepts no writes.
	ErrInRecovery = sentinel.New(tenure.ErrRefused, "the server is in recovery")
	// ErrSchema: the schema is missing, damaged, or of another version.
	ErrSchema = sentinel.New(tenure.ErrRefused, "the schema does not fit")
	// ErrDamaged: a part of the migrated schema is missing or was changed. It matches
	// ErrSchema.
	ErrDamaged = sentinel.New(ErrSchema, "the schema is damaged")
	// ErrPrivilege: the database user lacks a privilege.
	ErrPrivilege = sentinel.New(tenure.ErrRefused, "a privilege is missing")
	// ErrWrongMode: the installation uses leases and the backend sessions, or the
	// other way around.
	ErrWrongMode = sentinel.New(tenure.ErrRefused, "the installation has another mode")
)

// Failures for which a retry can help. All match [ErrDatabase].
var (
	// ErrDatabase: the database responds but cannot execute the request. Retrying can
	// succeed once the cause is gone.
	ErrDatabase = sentinel.New(tenure.ErrTenure, "the database failed")
	// ErrBusy: another program has locked the rows, or the file, for too long.
	ErrBusy = sentinel.New(ErrDatabase, "another program has locked the database")
	// ErrReadOnly: the database, or its file, accepts no writes.
	ErrReadOnly = sentinel.New(ErrDatabase, "the database is read-only")
	// ErrDiskFull: the disk has no room left.
	ErrDiskFull = sentinel.New(ErrDatabase, "the disk is full")
	// ErrInstallationInUse: live nodes use the installation to be created, removed or
	// changed.
	ErrInstallationInUse = sentinel.New(ErrDatabase, "the installation is in use")
)

// Reasons why a role cannot be changed. Both match [tenure.ErrTenure].
var (
	// ErrHasLeader: the operation needs a vacant role.
	ErrHasLeader = sentinel.New(tenure.ErrTenure, "the role has a leader")
	// ErrUnknownRole: no node has ever been a candidate for the role.
	ErrUnknownRole = sentinel.New(tenure.ErrTenure, "no node has ever been a candidate for the role")
)
