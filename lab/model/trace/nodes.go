package trace

import (
	"fmt"

	"github.com/exactly-one/tenure/internal/steps"
)

// rules has the rule of each kind. A rule returns the guard that does not hold, or "".
var rules map[steps.Kind]func(*Checker, steps.Step) string

func init() {
	rules = map[steps.Kind]func(*Checker, steps.Step) string{
		steps.Opens: (*Checker).opens, steps.SendsHeartbeat: (*Checker).sendsHeartbeat, steps.GetsAnswer: (*Checker).getsAnswer,
		steps.Tries: (*Checker).tries, steps.Leads: (*Checker).leads, steps.EndsTerm: (*Checker).endsTerm,
		steps.WorkReturns: (*Checker).workReturns, steps.Releases: (*Checker).releases, steps.GivesUp: (*Checker).givesUp,
		steps.Closes: (*Checker).closes, steps.Dies: (*Checker).dies,

		steps.AgentGetsAnswer: (*Checker).agentGetsAnswer, steps.AgentReleases: (*Checker).agentReleases, steps.AgentCloses: (*Checker).agentCloses,

		steps.Joins: (*Checker).joins, steps.Performs: (*Checker).performs, steps.Beats: (*Checker).beats,
		steps.TakesLock: (*Checker).takesLock, steps.Begins: (*Checker).begins, steps.Unlocks: (*Checker).unlocks,
		steps.IdleEnds: (*Checker).idleEnds, steps.Reaps: (*Checker).reaps, steps.Ends: (*Checker).ends, steps.Kills: (*Checker).kills,
		steps.Leaves: (*Checker).leaves, steps.Forgets: (*Checker).forgets,
		steps.Crashes: (*Checker).crashes, steps.Stops: (*Checker).stops, steps.Starts: (*Checker).starts,
		steps.Loses: (*Checker).loses, steps.Promotes: (*Checker).promotes, steps.Recreates: (*Checker).recreates,
		steps.ClockSteps: (*Checker).clockSteps,
		steps.Sees:       (*Checker).sees,
		steps.Fences:     (*Checker).fences, steps.Commits: (*Checker).commits, steps.RollsBack: (*Checker).rollsBack,
	}
}

func (c *Checker) opens(s steps.Step) string {
	n := c.node(s.Node)
	for _, x := range n.sessions {
		if c.trusts(x, s.At) {
			return fmt.Sprintf("conn = 0: trust in session %d has not ended", x.number)
		}
		x.conn = 0
	}
	n.sessions, n.lease, n.margin = nil, s.Lease, s.Margin
	return ""
}

func (c *Checker) sendsHeartbeat(s steps.Step) string {
	x := c.holds(s)
	switch {
	case x == nil:
		return ""
	case x.conn != 1 && !c.trusts(x, s.At):
		return "conn = 1 || trust > 0"
	}
	x.sent, x.done = s.At, false
	return ""
}

func (c *Checker) getsAnswer(s steps.Step) string {
	x := c.holds(s)
	switch {
	case x == nil:
		return ""
	case !x.done:
		return "done: the server has not performed the heartbeat"
	case c.Frozen:
	case x.conn != 1 && !c.trusts(x, s.At):
		return "conn > 0: trust had ended before the answer came"
	case s.Trust > x.lease-x.margin-(s.At-x.sent)+c.Blur:
		return fmt.Sprintf("trust = TRUST - waits: %v - %v, and not %v", x.lease-x.margin, s.At-x.sent, s.Trust)
	}
	if until, shared := c.limit(x); shared && s.At+s.Trust > until+c.Blur {
		return fmt.Sprintf("nodeTrust <= limit: the agent's session is trusted for %v, and not %v", until-s.At, s.Trust)
	}
	x.conn, x.done, x.deadline = 2, false, s.At+s.Trust
	return ""
}

func (c *Checker) tries(s steps.Step) string {
	x := c.holds(s)
	switch {
	case x == nil:
		return ""
	case !c.trusts(x, s.At):
		return "trust > 0"
	case x.node.work[s.Role] != 0:
		return fmt.Sprintf("work = 0: work of term %d runs", x.node.work[s.Role])
	case x.leads[s.Role] != 0:
		return "has < 2: the session leads the role"
	}
	x.tried[s.Role] = true
	return ""
}

func (c *Checker) leads(s steps.Step) string {
	x := c.holds(s)
	switch {
	case x == nil:
		return ""
	case x.got[s.Role] != s.Term:
		return "got > 0: the server has begun no such term"
	case !c.trusts(x, s.At):
		return "trust > 0"
	case x.node.work[s.Role] != 0:
		return fmt.Sprintf("work_alone: work of term %d runs", x.node.work[s.Role])
	}
	for _, other := range c.sessions {
		if other == x || other.leads[s.Role] == 0 || !c.trusts(other, s.At+2*c.Blur) || c.Frozen {
			continue
		}
		if s.At >= c.server.excused {
			return fmt.Sprintf("one_leader: session %d trusts term %d", other.number, other.leads[s.Role])
		}
		c.leave(other)
	}
	x.leads[s.Role], x.node.work[s.Role] = s.Term, s.Term
	x.led[s.Role] = s.At
	delete(x.free, s.Role)
	return ""
}

// endsTerm is no step of the models if the term ended with the trust of its session.
func (c *Checker) endsTerm(s steps.Step) string {
	if x := c.inside(s); x != nil && x.leads[s.Role] == s.Term {
		delete(x.leads, s.Role)
	}
	return ""
}

// workReturns may come before the end of the term: then the models end the term first.
func (c *Checker) workReturns(s steps.Step) string {
	if n := c.node(s.Node); n.work[s.Role] == s.Term {
		delete(n.work, s.Role)
	}
	return ""
}

func (c *Checker) releases(s steps.Step) string {
	x := c.holds(s)
	switch {
	case x == nil:
		return ""
	case x.leads[s.Role] != 0:
		return "leads = 0: the term has not ended"
	case x.node.work[s.Role] != 0:
		return fmt.Sprintf("work = 0: work of term %d runs", x.node.work[s.Role])
	case !c.trusts(x, s.At):
		return "trust > 0"
	}
	x.releases[s.Role] = true
	if row := c.role(s.Role).row; row != nil && row.session == x {
		row.clean = true
	}
	return ""
}

func (c *Checker) givesUp(s steps.Step) string {
	if x := c.sessions[s.Session]; x != nil {
		x.giveUp(s.At)
	}
	return ""
}

func (c *Checker) closes(s steps.Step) string {
	x := c.inside(s)
	switch {
	case x == nil:
		return ""
	case !x.open: // it ended on the server
		x.closed = true
		return ""
	case s.Forced:
		c.leave(x)
	case c.mayClose(x, s.At) != "":
		return c.mayClose(x, s.At)
	}
	x.giveUp(s.At)
	x.closed = true
	return ""
}

func (c *Checker) dies(s steps.Step) string {
	n := c.node(s.Node)
	clear(n.work)
	for _, x := range n.sessions {
		x.giveUp(s.At)
		x.closed = true
	}
	return ""
}
