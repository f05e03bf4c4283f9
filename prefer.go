package tenure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/exactly-one/tenure/internal/preference"
)

// takeOverRequest is a request to the leader of a role to hand over to this node.
type takeOverRequest struct {
	election *Election
	leader   Leader
	score    preference.Score // of the leader
}

// prepareTakeOverLocked validates the preference of a new election and starts the
// goroutine for requests to hand over, if the election is the first with TakeOverAfter.
func (n *Node) prepareTakeOverLocked(cfg ElectionConfig) error {
	if cfg.TakeOverAfter < 0 || cfg.TakeOverAfter > longestTakeOverAfter {
		return fmt.Errorf("%w: TakeOverAfter is %v; it must be between 0 and %v", ErrInvalidConfig, cfg.TakeOverAfter, longestTakeOverAfter)
	}
	if cfg.TakeOverAfter == 0 || n.cfg.NoLeader {
		return nil
	}
	if b, ok := n.backend.(interface{ LeadersHaveLabels() bool }); ok && !b.LeadersHaveLabels() {
		return fmt.Errorf("%w: TakeOverAfter needs the labels of every leader, which this backend does not have", ErrUnsupported)
	}
	if !n.takesOver {
		n.takesOver = true
		n.group.Go(n.takeOverRoles) // exits when the node closes; Close waits through n.group
	}
	return nil
}

// takeOverRoles asks less preferred leaders to hand over to this node, until the node
// closes. It reads the leaders once in each CheckInterval and before each request, but
// not while the node leads all roles or may campaign for none.
func (n *Node) takeOverRoles() {
	failed := false
	for n.ctx.Err() == nil {
		next, err := n.takeOverDue()
		switch {
		case errors.Is(err, ErrUnsupported):
			n.log.Warn("taking over roles is disabled: the backend does not support it", "error", err)
			return
		case err != nil && n.ctx.Err() == nil && !failed:
			n.log.Warn("reading the leaders failed: this node asks no leader to hand over", "error", err)
		}
		failed = err != nil
		n.pause(n.ctx, next)
	}
}

// takeOverDue reads the leaders, sends the due requests, and returns when to read the
// leaders again.
func (n *Node) takeOverDue() (next time.Duration, err error) {
	interval := n.cfg.CheckInterval
	roles := n.rolesToTakeOver()
	if len(roles) == 0 {
		return interval, nil
	}
	ctx, cancel := n.boundedCall()
	leaders, err := n.backend.Leaders(ctx, roles...)
	cancel()
	if err != nil {
		return interval, err
	}
	requests, next := n.compareLeaders(leaders)
	for _, r := range requests {
		if err := n.requestTakeOver(r); err != nil {
			return interval, err
		}
	}
	return min(next, interval), nil
}

// boundedCall returns a context for one call of the backend.
func (n *Node) boundedCall() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(n.ctx)
	stop := n.clock.AfterFunc(max(n.cfg.CheckInterval, time.Second), func() { cancel(context.DeadlineExceeded) })
	return ctx, func() { stop(); cancel(nil) }
}

// rolesToTakeOver returns the roles for which this node compares itself with the leader.
func (n *Node) rolesToTakeOver() (roles []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.clock.Now().Mono
	for e := range n.followers {
		if e.mayTakeOverLocked(now) {
			roles = append(roles, e.role.Name())
		} else {
			e.takeOver.session = nil
		}
	}
	slices.Sort(roles)
	return roles
}

// mayTakeOverLocked reports whether the election waits for the role on a live session
// and could begin a term at this moment.
func (e *Election) mayTakeOverLocked(now time.Duration) bool {
	s, state := e.node.session, e.State()
	return e.cfg.TakeOverAfter > 0 && s != nil && s.trust.valid() && e.term == nil && !e.stopping &&
		(state == Follower || state == Acquiring) && !e.attempt.pending && !e.attempt.unlocking && e.attempt.notBefore <= now &&
		e.mayCampaignLocked() && e.withoutRoomLocked() == nil
}

// compareLeaders returns the requests due now, and when the next one is due. For each
// group it returns at most one request, for the role of the least preferred leader.
func (n *Node) compareLeaders(leaders []Leader) (requests []takeOverRequest, next time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.clock.Now().Mono
	led := make(map[string]Leader, len(leaders))
	for _, leader := range leaders {
		led[leader.Role] = leader
	}
	next = n.cfg.CheckInterval
	almost := map[*group]bool{} // another role of the group is due in this interval: its leader may be preferred less
	for e := range n.followers {
		leader := led[e.role.Name()]
		score, below := e.compareLeaderLocked(leader, now)
		if !below {
			e.takeOver.session = nil
			continue
		}
		if left := e.takeOver.since + e.takeOverWaitLocked() - now; left > 0 {
			next = min(next, left)
			if e.group != nil && left <= n.cfg.CheckInterval {
				almost[e.group] = true
			}
		} else {
			requests = append(requests, takeOverRequest{e, leader, score})
		}
	}
	slices.SortFunc(requests, func(a, b takeOverRequest) int {
		return cmp.Or(a.score.Compare(b.score), strings.Compare(a.leader.Role, b.leader.Role))
	})
	asked := map[*group]bool{}
	requests = slices.DeleteFunc(requests, func(r takeOverRequest) bool {
		g := r.election.group
		if g != nil && (asked[g] || almost[g]) {
			return true
		}
		asked[g] = true
		r.election.takeOver.asked = r.leader.Term
		r.election.restartWaitLocked(now)
		return false
	})
	return requests, next
}

// compareLeaderLocked compares a leader with this node, if this node may take over
// the role. It records since when the leader has been less preferred.
func (e *Election) compareLeaderLocked(leader Leader, now time.Duration) (score preference.Score, below bool) {
	n, t := e.node, &e.takeOver
	if leader.Term == 0 || leader.ValidFor <= 0 || leader.NodeID == n.id || !e.mayTakeOverLocked(now) {
		return score, false
	}
	score = preference.Of(leader.Labels, e.cfg.Prefers)
	if e.disputesLocked(leader, score) || score.Compare(e.ownScoreLocked()) >= 0 {
		return score, false
	}
	if t.session != n.session || t.term != leader.Term {
		t.session, t.term, t.since = n.session, leader.Term, now
	}
	return score, true
}

// restartWaitLocked makes the election, and the others of its group, wait again before
// the next request.
func (e *Election) restartWaitLocked(now time.Duration) {
	e.takeOver.since = now
	if e.group != nil {
		for _, other := range e.group.elections {
			other.takeOver.since = now
		}
	}
}

// takeOverWaitLocked returns how long the leader must have been less preferred before
// this node asks for the role.
func (e *Election) takeOverWaitLocked() time.Duration {
	return max(e.cfg.TakeOverAfter, e.dampingLocked().wait)
}

// dampTakeOverLocked adjusts the wait after a term. It doubles after a short term if this
// node had taken over the role, and a long term resets it. A term ended by a take-over
// does neither: a long wait of the other node made it long; see disputesLocked.
func (e *Election) dampTakeOverLocked(t *Term) {
	n, d := e.node, e.dampingLocked()
	unit := max(e.cfg.TakeOverAfter, n.cfg.CheckInterval)
	switch lasted := n.clock.Now().Mono - t.beganAt; {
	case e.cfg.TakeOverAfter == 0 || t.takenOverFromLocked():
	case lasted >= longTerm*n.cfg.CheckInterval:
		d.wait = 0
	case t.takenOver:
		d.wait = min(2*max(d.wait, unit), longTerm*unit)
	}
}

// requestTakeOver asks the leader of a role to hand over to this node. It returns an
// error if the backend cannot record requests.
func (n *Node) requestTakeOver(r takeOverRequest) error {
	ctx, cancel := n.boundedCall()
	defer cancel()
	log := n.log.With("role", r.leader.Role, "leader", r.leader.NodeName, "term", r.leader.Term)
	err := n.backend.Request(ctx, Request{
		Kind: RequestHandOver, Role: r.leader.Role, Term: r.leader.Term, Target: n.id, By: takeOverBy + n.cfg.Name,
	})
	switch {
	case err == nil:
		log.Info("asked the leader to hand over to this node, which is preferred")
	case errors.Is(err, ErrUnsupported):
		return err
	case errors.Is(err, ErrNoLeader), n.ctx.Err() != nil:
	default:
		log.Warn("asking the leader to hand over to this node failed", "error", err)
	}
	return nil
}

// PreferredMembers returns the most preferred members, by priority and Prefers, among the
// members with all required labels and node roles. It keeps their order and does not check
// their status.
func (e *Election) PreferredMembers(members []Member) []Member {
	var best []Member
	var highest preference.Score
	for _, m := range members {
		if nodeRole, label := e.cfg.missing(&m.Description); nodeRole != "" || label != "" {
			continue
		}
		score := preference.Of(m.Labels, e.cfg.Prefers)
		if len(best) == 0 || score.Compare(highest) > 0 {
			best, highest = nil, score
		}
		if score == highest {
			best = append(best, m)
		}
	}
	return best
}
