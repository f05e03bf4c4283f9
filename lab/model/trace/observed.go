package trace

import (
	"fmt"
	"time"

	"github.com/exactly-one/tenure/internal/steps"
)

// observed has the rules of the moments that were seen of a real server, if they differ. They
// judge what every history shows, whatever else the server did: times of sending are early,
// and times of begins and ends are late. A session is silent for at least as long as its last
// acknowledged heartbeat is old.
var observed map[steps.Kind]func(*Checker, steps.Step) string

func init() {
	observed = map[steps.Kind]func(*Checker, steps.Step) string{
		steps.Begins: (*Checker).seenBegins, steps.IdleEnds: (*Checker).seenIdleEnds, steps.Reaps: (*Checker).seenReaps,
		steps.Ends: (*Checker).seenEnds, steps.Forgets: (*Checker).seenForgets, steps.Sees: (*Checker).sees,
		steps.Starts: (*Checker).seenStarts,
	}
}

// must reports whether a session trusts for certain.
func (c *Checker) must(x *session, now time.Duration) bool { return c.trusts(x, now+2*c.Blur) }

func (c *Checker) seenBegins(s steps.Step) string {
	x, r := c.sessions[s.Session], c.role(s.Role)
	if x == nil || x.life != c.server.life {
		return ""
	}
	c.Seen[s.Kind]++
	if x.got[s.Role] != s.Term { // the node did not lead before
		if s.Term <= r.used && !c.server.stepped {
			return fmt.Sprintf("numbers_grow: number %d was used", r.used)
		}
		r.used, x.got[s.Role] = max(r.used, s.Term), s.Term
	}
	reunion := r.begun != c.server.life
	r.begun = c.server.life
	if s.At < c.server.excused {
		return ""
	}
	for _, other := range c.sessions {
		switch {
		case other == x || other.node == x.node || !c.must(other, s.At):
		case other.leads[s.Role] != 0:
			return fmt.Sprintf("one_leader: session %d trusts term %d when the next one begins", other.number, other.leads[s.Role])
		case reunion && other.life != c.server.life && !other.gone:
			return fmt.Sprintf("WAITED || REUNITED: session %d of an earlier life of the server is trusted for %v", other.number, other.deadline-s.At)
		}
	}
	return ""
}

// seenIdleEnds allows for a step of the server's clock by the margin.
func (c *Checker) seenIdleEnds(s steps.Step) string {
	x := c.sessions[s.Session]
	if x == nil || x.life != c.server.life {
		return ""
	}
	c.Seen[s.Kind]++
	if silent := s.At - x.silent; silent+x.margin+c.Blur < x.lease && !x.outside && s.At >= c.server.excused {
		return fmt.Sprintf("silent >= IDLE: %v of %v", silent, x.lease)
	}
	c.endOnServer(x)
	return ""
}

// seenReaps is for a session that its node may still trust. A node ends its earlier sessions
// in the same way.
func (c *Checker) seenReaps(s steps.Step) string {
	x := c.sessions[s.Session]
	if x == nil || x.life != c.server.life {
		return ""
	}
	c.Seen[s.Kind]++
	if silent := s.At - x.silent; silent+x.margin+c.Blur < x.lease && c.must(x, s.At) && s.At >= c.server.excused {
		return fmt.Sprintf("silent >= REAPED: %v of %v", silent, x.lease)
	}
	c.endOnServer(x)
	return ""
}

func (c *Checker) seenEnds(s steps.Step) string {
	x := c.sessions[s.Session]
	if x == nil || x.life != c.server.life {
		return ""
	}
	c.Seen[s.Kind]++
	if len(x.leads) > 0 && !x.closed && c.must(x, s.At) {
		return "conn = 0: trust in a term has not ended, and the server has freed its lock"
	}
	c.endOnServer(x)
	return ""
}

// seenStarts implies a crash that the log does not have: its disk was full.
func (c *Checker) seenStarts(s steps.Step) string {
	if !c.server.down {
		c.crashes(s)
	}
	return c.starts(s)
}

func (c *Checker) seenForgets(s steps.Step) string {
	for _, x := range c.node(s.Node).sessions {
		x.gone = true
	}
	return ""
}

// sees judges a look at the locks. A session that leads since before the look, and still
// trusts, has the lock. A server frees the locks of a session before it says that it has
// ended, so the second look counts. A server whose clock is false ends sessions early, and
// the time of such an end is uncertain: that session leaves the models.
func (c *Checker) sees(s steps.Step) string {
	c.Seen[s.Kind]++
	for _, n := range c.nodes {
		for _, x := range n.sessions {
			for role, term := range x.leads {
				if !x.open || x.life != c.server.life || x.led[role] >= s.At-s.By-c.Blur || !c.must(x, s.At) {
					continue
				}
				holder := s.Locks[role]
				if holder != x.number && x.free[role] {
					if s.At < c.server.excused {
						c.leave(x)
						break
					}
					return fmt.Sprintf("locker = %d: session %d trusts term %d of %s, and session %d has the lock (0: none)", x.number, x.number, term, role, holder)
				}
				x.free[role] = holder != x.number
			}
		}
	}
	return ""
}
