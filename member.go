package tenure

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/preference"
)

// NodeStatus is the status of a node.
type NodeStatus string

// The statuses of nodes.
const (
	StatusJoining  NodeStatus = "joining"  // starts and does not campaign yet
	StatusActive   NodeStatus = "active"   // takes work and campaigns
	StatusDraining NodeStatus = "draining" // finishes its work and takes no new work
	StatusDead     NodeStatus = "dead"     // crashed or silent
)

// OrDead returns s, or StatusDead if s is not a status: no work must be sent to a node of
// unknown status.
func (s NodeStatus) OrDead() NodeStatus {
	switch s {
	case StatusJoining, StatusActive, StatusDraining:
		return s
	default:
		return StatusDead
	}
}

// AcceptsWork reports whether a node with this status takes new work. Only an
// active node does.
func (s NodeStatus) AcceptsWork() bool { return s == StatusActive }

// Description has the fields a node publishes about itself. It can change while the node
// is open; see [Node.UpdateDescription].
type Description struct {
	// Status is joining, active or draining. Only an active node campaigns.
	// Default: active.
	Status NodeStatus
	// StatusBy is the requester of the status, as in Request.By. It is empty if
	// there is none or the node is dead. The registry's history records it with
	// the change.
	StatusBy string
	// Drained reports that a draining node has no work and no role left.
	Drained bool

	Address      string // of this node for other nodes: an IP address or a host name
	HTTPPort     int    // 0: none
	GRPCPort     int    // 0: none
	Roles        []string
	Capabilities []string
	Labels       map[string]string
	Version      string // of the program
	// Spreads has the node's weight in each set of roles shared with other nodes.
	Spreads map[string]float64
}

// clone returns a deep copy of d.
func (d Description) clone() Description {
	d.Roles, d.Capabilities = slices.Clone(d.Roles), slices.Clone(d.Capabilities)
	d.Labels, d.Spreads = maps.Clone(d.Labels), maps.Clone(d.Spreads)
	return d
}

// equal reports whether d and other have the same content.
func (d Description) equal(other Description) bool {
	return d.Status == other.Status && d.StatusBy == other.StatusBy && d.Drained == other.Drained && d.Address == other.Address &&
		d.HTTPPort == other.HTTPPort && d.GRPCPort == other.GRPCPort && d.Version == other.Version &&
		slices.Equal(d.Roles, other.Roles) && slices.Equal(d.Capabilities, other.Capabilities) &&
		maps.Equal(d.Labels, other.Labels) && maps.Equal(d.Spreads, other.Spreads)
}

// NodeInfo identifies a node.
type NodeInfo struct {
	ID   uuid.UUID
	Name string
	Host string
}

// Load is how busy a node is, as its heartbeats publish it. Counts are at least 0 and at
// most 2147483647, percentages at least 0 and at most 1000000. Other values are published
// as the nearest of these, and NaN as 0.
type Load struct {
	Connections int     // open connections of clients
	Jobs        int     // jobs in progress
	InFlight    int     // requests and jobs that a drain waits for
	CPU         float64 // percent
	Memory      float64 // percent
}

// Mean returns the mean of CPU and memory as a number from 0 to 1.
func (l Load) Mean() float64 { return min(1, max(0, (l.CPU+l.Memory)/200)) }

// published returns the load with values for every database to store and add up.
func (l Load) published() Load {
	count := func(n int) int { return min(max(n, 0), math.MaxInt32) }
	percent := func(x float64) float64 {
		if math.IsNaN(x) {
			return 0
		}
		return min(max(x, 0), 1_000_000)
	}
	return Load{count(l.Connections), count(l.Jobs), count(l.InFlight), percent(l.CPU), percent(l.Memory)}
}

// Member is a node in the registry. Its slices and maps may be shared with
// other results: do not change them.
type Member struct {
	NodeInfo
	Description
	Load

	Incarnation   int64
	StartedAt     time.Time     // of the node's first session, by the database's clock
	LastHeartbeat time.Time     // by the database's clock
	Lease         time.Duration // reserved for the node while it is silent
	SilentFor     time.Duration // since LastHeartbeat at the time of the query, by the database's clock
}

// RoleHolder is the leader of a role, or the target of its reservation.
type RoleHolder struct {
	Role string
	Term int64
	Node uuid.UUID
	// Reserved reports a hand-over to Node: Node can acquire the role before other
	// candidates but does not lead it yet.
	Reserved bool
}

func (d Description) validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrInvalidConfig, fmt.Sprintf(format, args...))
	}
	if !slices.Contains([]NodeStatus{StatusJoining, StatusActive, StatusDraining}, d.Status) {
		return bad("the status of a node is %q; it must be joining, active or draining", d.Status)
	}
	for _, port := range []struct {
		name  string
		value int
	}{{"HTTP", d.HTTPPort}, {"gRPC", d.GRPCPort}} {
		if port.value != int(uint16(port.value)) {
			return bad("the %s port is %d; it must be between 1 and 65535, or 0 for none", port.name, port.value)
		}
	}
	if !utf8.ValidString(d.StatusBy) || strings.ContainsRune(d.StatusBy, 0) {
		return bad("requester %q must be valid UTF-8 without NUL", d.StatusBy)
	}
	texts := []string{d.Address, d.Version}
	texts = append(append(texts, d.Roles...), d.Capabilities...)
	for key, value := range d.Labels {
		if key == "" {
			return bad("a label has no name")
		}
		texts = append(texts, key, value)
	}
	if _, err := preference.Priority(d.Labels); err != nil {
		return bad("%v", err)
	}
	for name, weight := range d.Spreads {
		if !(weight > 0) || math.IsInf(weight, 0) {
			return bad("the weight in the spread %q is %v; it must be greater than 0", name, weight)
		}
		texts = append(texts, name)
	}
	for _, text := range texts {
		if text != "" && NamedRole(text).Validate() != nil {
			return bad("value %q in the node description must be at most %d bytes of UTF-8 without control characters", text, maxRoleName)
		}
	}
	return nil
}
