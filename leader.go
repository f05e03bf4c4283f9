package tenure

import (
	"maps"
	"time"

	"github.com/google/uuid"
)

// Leader is the leader of a role at the time of a query.
type Leader struct {
	Role       string
	Term       int64
	NodeID     uuid.UUID
	NodeName   string
	Host       string
	Agent      string    // the name of the agent that the node is behind; empty for most nodes
	AcquiredAt time.Time // by the database's clock
	LeaseUntil time.Time // by the database's clock

	// The leader's node publishes these in its [Description]. A backend without a
	// registry of nodes has them as they were when the node opened its session.
	Address  string            // an IP address or a host name; empty if the node publishes none
	HTTPPort int               // 0: none
	GRPCPort int               // 0: none
	Labels   map[string]string // may be shared with other results: do not change them

	// ValidFor is the remaining time of the lease, computed by the database. ReadAt
	// is when the query was sent, on this machine's monotonic clock.
	ValidFor time.Duration
	ReadAt   time.Time
}

// sameAs reports whether the leader, its term and its published data are the same.
func (l Leader) sameAs(other Leader) bool {
	return l.Term == other.Term && l.NodeID == other.NodeID && l.NodeName == other.NodeName && l.Agent == other.Agent && l.Host == other.Host &&
		l.Address == other.Address && l.HTTPPort == other.HTTPPort && l.GRPCPort == other.GRPCPort && maps.Equal(l.Labels, other.Labels)
}

// Valid reports whether the leader's lease has not expired: the remaining time
// at the query less the time since, on the monotonic clock. It compares no
// local clock with the database's.
func (l Leader) Valid() bool {
	return l.Term > 0 && time.Since(l.ReadAt) < l.ValidFor
}
