// Package history defines the records of leadership in a database: the leader of each
// role, the terms so far, and the ends of nodes. Elections by sessions (package postgres)
// and by leases (package lease) return the same types.
package history

import (
	"cmp"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/endreason"
)

// Query selects a part of the history. The zero value selects the newest of
// everything.
type Query struct {
	Role string // of terms only; default all
	// Node selects nodes by id, by name, or by the beginning of the id with at least four
	// characters. Default all.
	Node         string
	Since, Until time.Time // what was going on in between; default without bound
	Latest       bool      // only the last term of each role
	Limit        int       // default 1,000
}

// Rows returns Limit or its default.
func (q Query) Rows() int { return cmp.Or(q.Limit, 1000) }

// NodeID returns the full id of the selected node, if Node is one.
func (q Query) NodeID() (id uuid.UUID, ok bool) {
	id, err := uuid.Parse(q.Node)
	return id, err == nil
}

// Reasons for the end of a term. The leader gives the first five. The others are
// recorded by the next leader, or by the same node in a new session.
const (
	EndResigned      tenure.EndReason = endreason.Resigned      // the leader gave up the term
	EndCompleted     tenure.EndReason = endreason.Completed     // the leader completed its work until it is started again: see [tenure.Done]
	EndSteppedDown   tenure.EndReason = endreason.SteppedDown   // the leader was asked to step down
	EndHandedOver    tenure.EndReason = endreason.HandedOver    // the leader handed the role over to a named node
	EndShutdown      tenure.EndReason = endreason.Shutdown      // the election or its node stopped
	EndCrashed       tenure.EndReason = endreason.Crashed       // the session ended
	EndLeaseExpired  tenure.EndReason = endreason.LeaseExpired  // no heartbeat arrived in time
	EndServerChanged tenure.EndReason = endreason.ServerChanged // the server restarted or another one took over
)

// CauseUnobserved is the cause of the end of a term if its node crashed while no other
// node watched it. The end is when the next node found the role's lock free, and the
// vacancy before the next term is not known.
const CauseUnobserved = "no node observed the end"

// Term is the record of a term.
type Term struct {
	Role        string
	Term        int64
	Node        uuid.UUID
	NodeName    string
	Incarnation int32 // zero with leases
	Began       time.Time
	// Ended is zero while the term lasts. If the node crashed or fell silent, it is, with
	// sessions, when the first other node noticed the free lock, but at most two leases
	// after the node's last heartbeat. With leases it is when the node's lease expired.
	Ended  time.Time
	Reason tenure.EndReason // empty while the term lasts
	By     string           // the requester of the end, if any
	// Cause says in words why the leader ended the term, for example the error of its
	// work. It is empty if the leader gave none, and with leases.
	Cause string
	// NextBy is when the next term is due, if the term is the last one of its role and its
	// leader said so: its node campaigns again then, or completed work should have started
	// again by then. It is zero otherwise, and with leases.
	NextBy time.Time
	// PrecedingVacancy is for how long the role had no leader when the term began: from
	// the end of the previous term. It is negative if unknown: it was the first term, or
	// the server had changed.
	PrecedingVacancy time.Duration
	// PrecedingSilence is for how long the role was without a sign of life of a leader
	// when the term began. It counts from the last heartbeat of the previous leader, or
	// from the end of its term if it ended the term. After a freeze it is the time without
	// a working leader; after a crash it includes up to one refresh interval of the live
	// leader. It is negative if unknown.
	PrecedingSilence time.Duration
	// PrecedingBlocker names the transactions in the way of the term's beginning for
	// longer than the fence timeout. It is empty if there were none, and with leases.
	PrecedingBlocker string
	// Retired is when the role was retired after this term, or zero.
	Retired time.Time
}

// AtRest reports whether the role of the term needs no leader at a time: the term is the
// last one, its work was completed, and the next one is not overdue.
func (t Term) AtRest(now time.Time) bool {
	return t.Reason == EndCompleted && (t.NextBy.IsZero() || now.Before(t.NextBy))
}

// NodeChange is the record of a change of a node's status, or of its session.
type NodeChange struct {
	At          time.Time
	Node        uuid.UUID
	NodeName    string
	Incarnation int32
	Status      string // joining, active, draining, dead, or left: it is gone
	Previous    string // empty if the node is new
	By          string // the requester, if any
	// Silent reports whether a dead node had been silent: its lease had expired, or it
	// closed its session because its trust window had ended.
	Silent bool
}

// Outage is a time when no node reached the database: the server was down, or the network
// to it, or all nodes were frozen. The database cannot distinguish these cases.
type Outage struct {
	Began time.Time // the last heartbeat of any node before
	Ended time.Time // when the first session opened afterwards
	// ServerChanged reports whether the server had lost its locks: it restarted, or
	// another one took over.
	ServerChanged bool
	Roles         []string // those that stood still: their terms ended with it; ordered
}

// RoleStatus is who holds a role: by the records, and with sessions also by the
// server's lock table.
type RoleStatus struct {
	Role string
	Key  tenure.LockKey // zero with leases, which need no lock

	// Leader is the leader on record, or nil if the role is vacant.
	Leader *tenure.Leader
	// Sessions hold the role's lock. There is more than one only if programs other
	// than Tenure's share it.
	Sessions []LockSession
	// Blockers are the transactions in the way of the next term, if a node holds the lock
	// and waits for the row.
	Blockers []Blocker
}

// LockSession is a server session with a lock. Fields hidden from the database user are
// empty.
type LockSession struct {
	PID         int32
	User        string
	Application string
	Client      string    // address, or empty for a local socket
	Started     time.Time // by the database's clock; zero if hidden

	// NodeID and NodeName identify the session's node; the zero UUID if it is not
	// Tenure's.
	NodeID   uuid.UUID
	NodeName string
}

// Foreign reports whether the session is not a node's of this installation.
func (s LockSession) Foreign() bool { return s.NodeID == uuid.Nil }
