package tenure

import (
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
)

// NodeStatus is where a node is in its life.
type NodeStatus string

// The statuses of nodes.
const (
	StatusJoining  NodeStatus = "joining"  // starting up
	StatusActive   NodeStatus = "active"   // in service
	StatusDraining NodeStatus = "draining" // finishes its work and takes no more
	StatusDead     NodeStatus = "dead"     // gone without a word
)

// ParseNodeStatus returns the status of a text; that of an unknown text is
// StatusDead, since nobody should rely on such a node.
func ParseNodeStatus(text string) NodeStatus {
	switch status := NodeStatus(text); status {
	case StatusJoining, StatusActive, StatusDraining:
		return status
	default:
		return StatusDead
	}
}

// AcceptsWork reports whether a node of this status takes new work: only an
// active one does.
func (s NodeStatus) AcceptsWork() bool { return s == StatusActive }

// Description is what a node tells the others about itself. All of it may be
// changed while the node lives; see [Node.UpdateDescription].
type Description struct {
	// Status is joining, active or draining; default active. Unless it is
	// active, the node stands for no role.
	Status NodeStatus
	// StatusBy is who asked for the status, as in Request.By; empty if nobody
	// did, or nobody knows, and of a dead node. The registry's history has it
	// beside the change.
	StatusBy string
	// Drained says that a draining node has nothing left to do.
	Drained bool

	Address      string // where other nodes reach this one: an IP address or a host's name
	HTTPPort     int    // 0 for none
	GRPCPort     int    // 0 for none
	Roles        []string
	Capabilities []string
	Labels       map[string]string
	Version      string // of the program
	// Spreads are the sets of roles that the node shares with others, and its
	// weight in each.
	Spreads map[string]float64
}

// clone returns a copy that shares nothing with d.
func (d Description) clone() Description {
	d.Roles, d.Capabilities = slices.Clone(d.Roles), slices.Clone(d.Capabilities)
	d.Labels, d.Spreads = maps.Clone(d.Labels), maps.Clone(d.Spreads)
	return d
}

// equal reports whether d and other say the same.
func (d Description) equal(other Description) bool {
	return d.Status == other.Status && d.StatusBy == other.StatusBy && d.Drained == other.Drained && d.Address == other.Address &&
		d.HTTPPort == other.HTTPPort && d.GRPCPort == other.GRPCPort && d.Version == other.Version &&
		slices.Equal(d.Roles, other.Roles) && slices.Equal(d.Capabilities, other.Capabilities) &&
		maps.Equal(d.Labels, other.Labels) && maps.Equal(d.Spreads, other.Spreads)
}

// Member is a node as the registry has it. Its lists and maps may be shared with
// other readings: they must not be changed.
type Member struct {
	NodeInfo
	Description
	Load

	Incarnation   int64
	StartedAt     time.Time     // of the node's first session, by the database's clock
	LastHeartbeat time.Time     // by the database's clock
	Lease         time.Duration // for which the database keeps the node if it is silent
	SilentFor     time.Duration // since LastHeartbeat, when this was read, by the database's clock
}

// RoleHolder is who leads a role.
type RoleHolder struct {
	Role string
	Term int64
	Node uuid.UUID
	// Reserved says that the term has ended in favor of Node, which may take
	// the role before all others but does not lead it yet.
	Reserved bool
}

// RegistrySession is implemented by a [Session] whose database keeps a registry of
// nodes. Its methods are called as those of Session are.
type RegistrySession interface {
	// WriteDescription replaces what the registry tells of this node and tells the
	// others that it did.
	WriteDescription(description Description) error

	// Members reads the nodes that the registry has, the dead among them,
	// ordered by incarnation.
	Members() ([]Member, error)

	// Holders reads who leads the named roles, or may take them before all
	// others, ordered by role. Other roles are left out.
	Holders(roles []string) ([]RoleHolder, error)
}
