package trace

import (
	"fmt"
	"time"

	"github.com/exactly-one/tenure/internal/steps"
)

// hostBits are the bits of the number of a node's session that its agent counts. The rest is
// the number of the agent's session.
const hostBits = 32

// limit returns until when the agent of a session may be trusted; false without an agent.
func (c *Checker) limit(x *session) (time.Duration, bool) {
	until, found := c.hosts[x.number>>hostBits]
	return until, found
}

func (c *Checker) agentGetsAnswer(s steps.Step) string {
	c.hosts[s.Session] = max(c.hosts[s.Session], s.At+s.Trust)
	return ""
}

// agentReleases is for a node without a sign of life, without a connection, or about to leave.
func (c *Checker) agentReleases(s steps.Step) string {
	x := c.inside(s)
	switch {
	case x == nil || x.closed:
	case len(x.leads) > 0 && c.must(x, s.At):
		return fmt.Sprintf("lease <= NODELEASE - EXPIRES: the node trusts a term for %v", x.deadline-s.At)
	case !s.Forced && x.works() != "":
		return fmt.Sprintf("!work: work on %s runs", x.works())
	}
	return ""
}

// agentCloses is for a session that the agent has given up, or whose nodes have left.
func (c *Checker) agentCloses(s steps.Step) string {
	for _, x := range c.sessions {
		switch {
		case x.number>>hostBits != s.Session || x.closed || x.outside:
		case len(x.leads) > 0 && c.must(x, s.At):
			return fmt.Sprintf("ALONE || limitOver = 0: session %d trusts a term for %v", x.number, x.deadline-s.At)
		case !s.Forced && x.works() != "" && s.At+c.Blur < c.hosts[s.Session]:
			return fmt.Sprintf("ALONE || limitOver = 0: work on %s runs", x.works())
		}
	}
	return ""
}
