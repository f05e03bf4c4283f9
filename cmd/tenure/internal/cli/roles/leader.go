package roles

import (
	"fmt"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/record"
)

// leaderRecord is the leader of a role as printed.
type leaderRecord = record.Leader

func newLeaderRecord(leader *tenure.Leader) *leaderRecord { return record.NewLeader(leader) }

// leadsText returns a sentence about the leader of a role.
func leadsText(role string, leader *tenure.Leader) string {
	if leader == nil {
		return fmt.Sprintf("%s has no leader", role)
	}
	return fmt.Sprintf("%s leads %s, term %d", leader.NodeName, role, leader.Term)
}
