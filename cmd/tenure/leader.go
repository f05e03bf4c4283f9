package main

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// leaderRecord is the leader of a role as it is printed.
type leaderRecord struct {
	Term         int64     `json:"term"`
	Node         uuid.UUID `json:"node"`
	NodeName     string    `json:"node_name"`
	Host         string    `json:"host"`
	AcquiredAt   timestamp `json:"acquired_at"`
	LeaseUntil   timestamp `json:"lease_until"`
	ValidSeconds float64   `json:"valid_seconds"` // how long the lease still ran; negative if it had ended
}

func newLeaderRecord(leader *tenure.Leader) *leaderRecord {
	if leader == nil {
		return nil
	}
	return &leaderRecord{
		Term: leader.Term, Node: leader.NodeID, NodeName: leader.NodeName, Host: leader.Host,
		AcquiredAt: timestamp(leader.AcquiredAt), LeaseUntil: timestamp(leader.LeaseUntil),
		ValidSeconds: leader.ValidFor.Seconds(),
	}
}

// leadsText says who leads a role.
func leadsText(role string, leader *tenure.Leader) string {
	if leader == nil {
		return fmt.Sprintf("nobody leads %s", role)
	}
	return fmt.Sprintf("%s leads %s, term %d", leader.NodeName, role, leader.Term)
}
