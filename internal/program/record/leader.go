package record

import (
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// Leader is the leader of a role.
type Leader struct {
	Term         int64             `json:"term"`
	Node         uuid.UUID         `json:"node"`
	NodeName     string            `json:"node_name"`
	Agent        string            `json:"agent"` // that the node is behind, if any; the id is of the agent
	Host         string            `json:"hostname"`
	Address      string            `json:"address"`   // empty if the node publishes none
	HTTPPort     int               `json:"http_port"` // 0 for none
	GRPCPort     int               `json:"grpc_port"`
	Labels       map[string]string `json:"labels"`
	AcquiredAt   Time              `json:"began_at"` // of the term
	LeaseUntil   Time              `json:"lease_until"`
	ValidSeconds float64           `json:"valid_seconds"` // how long the lease still ran; negative if it had ended
}

// NewLeader returns the record of a leader, nil if there is none.
func NewLeader(leader *tenure.Leader) *Leader {
	if leader == nil {
		return nil
	}
	labels := leader.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	return &Leader{
		Term: leader.Term, Node: leader.NodeID, NodeName: leader.NodeName, Agent: leader.Agent, Host: leader.Host,
		AcquiredAt: Time(leader.AcquiredAt), LeaseUntil: Time(leader.LeaseUntil),
		ValidSeconds: leader.ValidFor.Seconds(),
		Address:      leader.Address, HTTPPort: leader.HTTPPort, GRPCPort: leader.GRPCPort, Labels: labels,
	}
}

// Change is a change of leadership.
type Change struct {
	Time     Time    `json:"time"`
	Role     string  `json:"role"`
	Leader   *Leader `json:"leader"`   // null if no node leads now
	Previous *Leader `json:"previous"` // null if no node led, or at the start
}

// NewChange returns the record of a change seen at a time.
func NewChange(at time.Time, change tenure.LeaderChange) Change {
	return Change{Time(at), change.Role, NewLeader(change.Leader), NewLeader(change.Previous)}
}
