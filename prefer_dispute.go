package tenure

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/endreason"
	"github.com/exactly-one/tenure/internal/preference"
)

// Two nodes can prefer different labels. Each would then take over the role from the other
// without end. So if a node has lost the role to a less preferred node, it leaves the role
// to the other, until the labels of one of them change. Two nodes settle after at most one
// take-over by each. More nodes can form a circle. So each such loss also doubles the wait
// of the node, up to longestTakeOverAfter.

// takeOverBy begins the requester of a take-over, before the name of the node.
const takeOverBy = "preferred node "

// longestTakeOverAfter is the longest TakeOverAfter.
const longestTakeOverAfter = 24 * time.Hour

// disputeLocked remembers a take-over of the role by another node.
func (e *Election) disputeLocked(t *Term) {
	if e.cfg.TakeOverAfter == 0 || !t.takenOverFromLocked() {
		return
	}
	if e.takeOver.disputes == nil {
		e.takeOver.disputes = map[uuid.UUID]*dispute{}
	}
	e.takeOver.disputes[t.plannedEnd.target] = &dispute{own: e.ownScoreLocked()}
}

// takenOverFromLocked reports whether the term ended because a preferred node asked for the
// role.
func (t *Term) takenOverFromLocked() bool {
	end := t.plannedEnd
	return end != nil && end.reason == endreason.HandedOver && strings.HasPrefix(end.by, takeOverBy)
}

// ownScoreLocked is how much the election prefers this node.
func (e *Election) ownScoreLocked() preference.Score {
	return preference.Of(e.node.description.Labels, e.cfg.Prefers)
}

// disputesLocked reports whether a less preferred leader took over the role from this node
// with the present labels of both. It forgets the take-over if the labels of either have
// changed.
func (e *Election) disputesLocked(leader Leader, score preference.Score) bool {
	d := e.takeOver.disputes[leader.NodeID]
	if d == nil {
		return false
	}
	own := e.ownScoreLocked()
	if !d.compared {
		d.other, d.compared = score, true
		if d.own == own && score.Compare(own) < 0 {
			damping := e.dampingLocked()
			damping.wait = min(2*max(damping.wait, e.cfg.TakeOverAfter, e.node.cfg.CheckInterval), longestTakeOverAfter)
			e.node.log.Warn("a node took over the role that this node prefers less: this node leaves the role to it; every node should prefer the same labels",
				"role", leader.Role, "leader", leader.NodeName)
		}
	}
	if d.own != own || d.other != score || score.Compare(own) >= 0 {
		delete(e.takeOver.disputes, leader.NodeID)
		return false
	}
	return true
}

// dampingLocked returns the damping of the election. The elections of a group share
// one: otherwise a node whose work fails would try role after role.
func (e *Election) dampingLocked() *damping {
	if e.group != nil {
		return &e.group.damping
	}
	return &e.takeOver.damping
}
