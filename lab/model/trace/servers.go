package trace

import (
	"fmt"
	"time"

	"github.com/exactly-one/tenure/internal/steps"
)

func (c *Checker) joins(s steps.Step) string {
	n := c.node(s.Node)
	for _, x := range n.sessions {
		if c.trusts(x, s.At) {
			return fmt.Sprintf("conn = 0: trust in session %d has not ended", x.number)
		}
	}
	if !c.server.lifeRow {
		c.server.lifeRow, c.server.born = true, s.At+c.server.ahead
	}
	joined := s.At
	if n.row != nil && n.row.life == c.server.life {
		joined = n.row.joined
	}
	n.row = &nodeRow{life: c.server.life, joined: joined, heartbeat: s.At, lease: s.Lease}
	x := &session{
		number: s.Session, node: n, lease: s.Lease, margin: s.Margin, failoverWait: s.FailoverWait, synchronous: s.Synchronous,
		conn: 1, open: true, silent: s.At, started: min(s.At, c.server.started-c.server.ahead), born: min(s.At, c.server.born-c.server.ahead),
		tried: map[string]bool{}, releases: map[string]bool{}, got: map[string]int64{}, leads: map[string]int64{},
		life: c.server.life, led: map[string]time.Duration{}, free: map[string]bool{},
	}
	c.sessions[s.Session] = x
	n.sessions = append(n.sessions, x)
	return ""
}

// performs is for every statement of a session. The one that was under way when trust
// ended may be performed, and no other.
func (c *Checker) performs(s steps.Step) string {
	x := c.inside(s)
	if x == nil || c.Frozen || x.conn == 1 || c.trusts(x, s.At) {
		return ""
	}
	if x.late {
		return "quiet: the session sends statements after its trust has ended"
	}
	x.late = true
	return ""
}

func (c *Checker) beats(s steps.Step) string {
	x := c.inside(s)
	if x == nil {
		return ""
	}
	if !x.open {
		return "open"
	}
	x.silent, x.done = s.At, true
	if row := x.node.row; row != nil && row.life == c.server.life {
		row.heartbeat = s.At
	}
	return ""
}

func (c *Checker) takesLock(s steps.Step) string {
	x, r := c.sessions[s.Session], c.role(s.Role)
	switch {
	case x == nil:
		return ""
	case x.outside:
	case !x.open:
		return "open"
	case r.locker == x:
		return "no_stacking: the session holds the lock"
	case r.locker != nil && r.locker.open:
		return fmt.Sprintf("locker = NONE: session %d has the lock", r.locker.number)
	case !x.tried[s.Role]:
		return "sent = TAKE: the node does not try the role"
	}
	r.locker = x
	return ""
}

func (c *Checker) begins(s steps.Step) string {
	x, r := c.sessions[s.Session], c.role(s.Role)
	if x == nil {
		return ""
	}
	if wrong := c.mayBegin(s, x, r); wrong != "" && !x.outside {
		return wrong
	}
	r.row = &term{number: s.Term, session: x, life: c.server.life, timeline: c.server.timeline}
	r.terms[s.Term], r.used = r.row, max(r.used, s.Term)
	x.got[s.Role] = s.Term
	delete(x.tried, s.Role)
	return ""
}

func (c *Checker) mayBegin(s steps.Step, x *session, r *role) string {
	if r.locker != x || !x.open {
		return "locker: the session does not hold the lock"
	}
	for _, t := range c.fenced {
		if t.Role == s.Role {
			return fmt.Sprintf("ROWFREE: transaction %d has fenced term %d", t.Tx, t.Term)
		}
	}
	// Only the clock makes a number larger than one that no row has.
	if s.Term <= r.used && !(c.server.stepped && (r.row == nil || r.row.number < s.Term)) {
		return fmt.Sprintf("numbers_grow: number %d was used", r.used)
	}
	switch {
	case r.row != nil && r.row.life == c.server.life, r.row == nil && c.server.first:
		return "" // the lock table remembers the last leader
	case s.At < c.server.excused:
		return ""
	case c.waited(s.At, x, r.row):
		return ""
	}
	return c.reunited(s.At, x, r.row)
}

// waited is WAITED: each node that has not come back has had the time to end its trust.
func (c *Checker) waited(now time.Duration, x *session, row *term) bool {
	wait := x.lease
	if row != nil {
		wait = max(wait, row.session.lease)
	}
	if row == nil || row.timeline != c.server.timeline {
		wait = max(wait, x.failoverWait)
	}
	for _, n := range c.nodes {
		if n.row != nil && n.row.life != c.server.life {
			wait = max(wait, n.row.lease)
		}
	}
	return now+c.Blur >= x.since(row)+wait
}

// since is SINCE. The session has read it from the server's clock when it was opened.
func (x *session) since(row *term) time.Duration {
	if row == nil {
		return x.born
	}
	return max(x.started, x.born)
}

// reunited is REUNITED: no node may trust a session of an earlier life.
func (c *Checker) reunited(now time.Duration, x *session, row *term) string {
	left := x.since(row) + x.lease - now
	switch {
	case row == nil:
		return fmt.Sprintf("WAITED, since no row is left: %v before that", left)
	case !row.clean && row.session.node.row == nil:
		return fmt.Sprintf("WAITED, since the row of the last leader was removed: %v before that", left)
	case row.timeline != c.server.timeline && !x.synchronous:
		return fmt.Sprintf("WAITED, since the standby may lack nodes: %v before that", left)
	}
	var at time.Duration
	for _, n := range c.nodes {
		switch {
		case n.row == nil:
		case n.row.life == c.server.life:
			at = max(at, n.row.joined)
		default:
			at = max(at, n.row.heartbeat+n.row.lease)
		}
	}
	if at > now+c.Blur {
		return fmt.Sprintf("WAITED || REUNITED: %v before that, a node that has not come back may trust for %v", left, at-now)
	}
	if row.timeline != c.server.timeline && now+c.Blur < at+x.margin {
		return fmt.Sprintf("after = 0: the clocks of the servers differ by less than %v, and all nodes were back %v ago", x.margin, now-at)
	}
	return ""
}

func (c *Checker) unlocks(s steps.Step) string {
	x, r := c.sessions[s.Session], c.role(s.Role)
	switch {
	case x == nil:
		return ""
	case !x.releases[s.Role] && !x.outside:
		return "sent = RELEASE: the node has not released the role"
	}
	delete(x.releases, s.Role)
	if r.locker == x {
		r.locker = nil
	}
	return ""
}

func (c *Checker) idleEnds(s steps.Step) string {
	x := c.sessions[s.Session]
	if x == nil {
		return ""
	}
	if silent := s.At - x.silent; silent+c.Blur < x.lease && !x.outside {
		return fmt.Sprintf("silent >= IDLE: %v of %v", silent, x.lease)
	}
	c.endOnServer(x)
	return ""
}

func (c *Checker) reaps(s steps.Step) string {
	x := c.sessions[s.Session]
	if x == nil {
		return ""
	}
	if silent := s.At - x.silent; silent+c.Blur < x.lease && !x.outside {
		if s.At >= c.server.excused {
			return fmt.Sprintf("silent >= REAPED: %v of %v", silent, x.lease)
		}
		c.leave(x)
	}
	c.endOnServer(x)
	return ""
}

// mayClose returns why a node may not end a session, or "".
func (c *Checker) mayClose(x *session, now time.Duration) string {
	if len(x.leads) > 0 && c.trusts(x, now) {
		return "conn = 0: trust in a term has not ended"
	}
	if name := x.works(); name != "" {
		return fmt.Sprintf("work_first: work on %s runs", name)
	}
	return ""
}

func (c *Checker) ends(s steps.Step) string {
	x := c.sessions[s.Session]
	switch {
	case x == nil:
		return ""
	case x.outside, x.closed, c.server.down:
	case c.mayClose(x, s.At) != "":
		return c.mayClose(x, s.At)
	}
	c.endOnServer(x)
	return ""
}

func (c *Checker) kills(s steps.Step) string {
	if x := c.sessions[s.Session]; x != nil {
		c.leave(x)
		c.endOnServer(x)
	}
	return ""
}

func (c *Checker) leaves(s steps.Step) string {
	if x := c.sessions[s.Session]; x != nil {
		if wrong := c.mayClose(x, s.At); wrong != "" && !x.outside {
			return wrong
		}
		for _, r := range c.roles {
			if r.locker == x {
				r.locker = nil
			}
		}
	}
	c.node(s.Node).row = nil
	return ""
}

func (c *Checker) forgets(s steps.Step) string {
	n := c.node(s.Node)
	if n.row == nil {
		return ""
	}
	if left := n.row.heartbeat + n.row.lease - s.At; left > c.Blur && s.At >= c.server.excused {
		return fmt.Sprintf("OVER: the node may trust a session for %v", left)
	}
	n.row = nil
	return ""
}

// goDown ends a life of the server: its locks are forgotten.
func (c *Checker) goDown() {
	c.server.down = true
	c.server.life++
	for _, r := range c.roles {
		r.locker = nil
	}
}

func (c *Checker) crashes(steps.Step) string {
	c.goDown()
	c.server.lifeRow, c.server.first = false, false
	return ""
}

func (c *Checker) stops(steps.Step) string {
	c.goDown()
	return ""
}

func (c *Checker) starts(s steps.Step) string {
	c.server.down, c.server.started = false, s.At+c.server.ahead
	return ""
}

func (c *Checker) loses(s steps.Step) string {
	c.restore(s)
	return ""
}

// restore makes the rows of roles earlier ones.
func (c *Checker) restore(s steps.Step) {
	for name, r := range c.roles {
		r.row = nil
		if found := r.terms[s.Terms[name]]; found != nil {
			before := *found
			before.clean = s.Ended[name]
			r.row = &before
		}
	}
}

func (c *Checker) promotes(s steps.Step) string {
	c.server.timeline++
	c.server.lifeRow = false
	c.restore(s)
	for _, n := range c.nodes {
		n.row = nil
	}
	for _, row := range s.Rows {
		c.node(row.Node).row = &nodeRow{life: -1, heartbeat: row.Heartbeat, lease: row.Lease}
	}
	return ""
}

func (c *Checker) recreates(s steps.Step) string {
	c.server.lifeRow, c.server.first, c.server.born = true, true, s.At+c.server.ahead
	for _, r := range c.roles {
		r.row, r.locker = nil, nil
	}
	for _, n := range c.nodes {
		n.row = nil
	}
	return ""
}

func (c *Checker) clockSteps(s steps.Step) string {
	c.server.stepped = true
	c.server.ahead += s.By
	if s.Excuse > 0 {
		c.server.excused = s.At + s.Excuse
	}
	return ""
}

func (c *Checker) fences(s steps.Step) string {
	if row := c.role(s.Role).row; row == nil || row.number != s.Term {
		return "term = fencedBy: another term has begun"
	}
	c.fenced[s.Tx] = s
	return ""
}

func (c *Checker) commits(s steps.Step) string {
	delete(c.fenced, s.Tx)
	if row := c.role(s.Role).row; row == nil || row.number != s.Term {
		return "fenced_order: another term has begun"
	}
	return ""
}

func (c *Checker) rollsBack(s steps.Step) string {
	delete(c.fenced, s.Tx)
	return ""
}
