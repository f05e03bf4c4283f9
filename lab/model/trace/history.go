package trace

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/exactly-one/tenure/internal/steps"
)

// Header is the first line of a stored history.
type Header struct {
	Frozen bool          `json:"frozen,omitempty"`
	Blur   time.Duration `json:"blur,omitempty"`

	// Nodes says that the history has the steps of nodes only, whose times are these.
	Nodes  bool          `json:"nodes,omitempty"`
	Lease  time.Duration `json:"lease,omitempty"`
	Margin time.Duration `json:"margin,omitempty"`

	// Server says that a history of nodes also has what was seen of a real server.
	Server bool `json:"server,omitempty"`
}

// Write stores a history: a header, then one step on a line.
func Write(to io.Writer, header Header, history []steps.Step) error {
	encoder := json.NewEncoder(to)
	err := encoder.Encode(header)
	for _, s := range history {
		if err == nil {
			err = encoder.Encode(s)
		}
	}
	return err
}

// Replay checks a stored history. The checker is valid although a step is not allowed.
func Replay(from io.Reader) (*Checker, error) {
	decoder := json.NewDecoder(from)
	var header Header
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
	if s.Session == 0 || s.Kind == steps.Opens || s.Node == "" { // without a node, the server's
		return
	}
	x := c.sessions[s.Session]
	if x == nil {
		c.joins(steps.Step{At: s.At, Node: s.Node, Session: s.Session, Lease: c.Lease, Margin: c.Margin})
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

// Merge sorts the steps of several nodes.
func Merge(history []steps.Step) {
	slices.SortStableFunc(history, func(a, b steps.Step) int { return cmp.Compare(a.At, b.At) })
}
