package main

import (
	"fmt"
	"strconv"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/record"
)

// leaderRecord is the leader of a role as it is printed.
type leaderRecord = record.Leader

func newLeaderRecord(leader *tenure.Leader) *leaderRecord { return record.NewLeader(leader) }

// leadsText says who leads a role.
func leadsText(role string, leader *tenure.Leader) string {
	if leader == nil {
		return fmt.Sprintf("nobody leads %s", role)
	}
	return fmt.Sprintf("%s leads %s, term %d", leader.NodeName, role, leader.Term)
}

// shortTerm shortens the number of a term for a display that is only looked at:
// its last six digits after an ellipsis. Terms of one role that begin within a
// quarter of an hour still differ. Numbers that are compared, copied or parsed
// are printed in full.
func shortTerm(number int64) string {
	const kept = 1_000_000
	if number < kept {
		return strconv.FormatInt(number, 10)
	}
	return fmt.Sprintf("…%06d", number%kept)
}
