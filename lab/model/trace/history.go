package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/exactly-one/tenure/internal/steplog"
	"github.com/exactly-one/tenure/internal/steps"
)

// Replay checks a stored history. The checker is valid although a step is not allowed.
func Replay(from io.Reader) (*Checker, error) {
	decoder := json.NewDecoder(from)
	var header steplog.Header
	if err := decoder.Decode(&header); err != nil {
		return nil, fmt.Errorf("read the header: %w", err)
	}
	c := New()
	c.Header = header
	for {
		var s steps.Step
		if err := decoder.Decode(&s); errors.Is(err, io.EOF) {
			return c, nil
		} else if err != nil {
			return c, fmt.Errorf("read step %d: %w", c.Steps+1, err)
		}
		c.Record(s)
		if err := c.Failure(); err != nil {
			return c, err
		}
	}
}

// imply makes the steps of a server of which a history of nodes has the result only: that
// it opened a session, performed a heartbeat, and began a term. Its own guards, such as
// those of a reunion, are not judged then.
func (c *Checker) imply(s steps.Step) {
	switch {
	case s.Session == 0 || s.Kind == steps.Opens || s.Node == "": // without a node, the server's
		return
	case s.Kind == steps.AgentGetsAnswer || s.Kind == steps.AgentReleases || s.Kind == steps.AgentCloses:
		return
	}
	x := c.own(s)
	if x == nil {
		c.joins(steps.Step{At: s.At, Node: s.Node, Session: s.Session, Lease: c.node(s.Node).lease, Margin: c.node(s.Node).margin})
		x = c.sessions[s.Session]
	}
	switch s.Kind {
	case steps.GetsAnswer:
		x.done = true
		x.silent = max(x.silent, x.sent) // or later
	case steps.Leads:
		if r := c.role(s.Role); s.Term > r.used {
			r.used, x.got[s.Role], r.begun = s.Term, s.Term, x.life
		}
	case steps.Closes:
		x.open = false // the node may have seen it end
	}
}

// own returns the session of a node's step, and lets its number mean it. Numbers repeat in
// tables that are made anew, and on a standby that lacks commits.
func (c *Checker) own(s steps.Step) *session {
	n, number := c.node(s.Node), s.Session
	x := c.sessions[number]
	again := x != nil && s.Kind == steps.SendsHeartbeat && x.closed // the first heartbeat of another session
	if x == nil || x.node == n && !again {
		return x
	}
	c.sessions[-int64(c.Steps)] = x // a number that no session has
	delete(c.sessions, number)
	for key, other := range c.sessions {
		if other.node == n && other.number == number && !other.closed {
			delete(c.sessions, key)
			c.sessions[number] = other
			return other
		}
	}
	return nil
}
