package incident

import (
	"fmt"
	"time"

	"github.com/exactly-one/tenure/internal/printable"
)

// Evidence returns the evidence of the cause, as sentences.
func (i Incident) Evidence(style Style) []string { return teller{i, style}.evidence() }

func (i teller) evidence() []string {
	switch i.Kind {
	case Crash:
		if i.unobserved() {
			return i.fault("The next node found the locks of %s free at %s.")
		}
		return i.fault("The server saw the connection of %s close at %s.")
	case Silence:
		text := "The lease of %s expired at %s"
		if seen := i.lastSeen(); !seen.IsZero() {
			text += fmt.Sprintf(", after %s of silence", printable.Duration(i.firstEnd().Sub(seen)))
		}
		return i.fault(text + ".")
	case Outage:
		return []string{
			"The last heartbeat of any node arrived at " + i.Time(i.Outage.Began) + ".",
			"The first session opened again at " + i.Time(i.Outage.Ended) + ".",
		}
	case Restart:
		return []string{"The locks of the database server were gone at " + i.Time(i.Began) + "."}
	case Deployment:
		return []string{"As many nodes joined as stopped, within minutes."}
	case Rebalance:
		return []string{"No requester is recorded: the nodes balanced their roles."}
	}
	if i.Kind == Change && i.Moves[0].From.Cause != "" {
		return []string{"The node recorded why: " + i.Text(i.Moves[0].From.Cause) + "."}
	}
	if i.By == "" {
		return []string{"No requester is recorded: the process stopped, or its program gave the role up."}
	}
	return []string{"Requested by " + i.Name(i.By) + "."}
}

// fault states the last heartbeat, if known, and the end of a node.
func (i teller) fault(format string) (texts []string) {
	if seen := i.lastSeen(); !seen.IsZero() {
		texts = append(texts, fmt.Sprintf("The last heartbeat of %s arrived at %s.", i.names(), i.Time(seen)))
	}
	return append(texts, fmt.Sprintf(format, i.names(), i.Time(i.firstEnd())))
}

// firstEnd is when the first term of the incident ended.
func (i Incident) firstEnd() time.Time {
	if len(i.Moves) == 0 {
		return i.Began
	}
	return i.Moves[0].From.Ended
}

// lastSeen is when the last heartbeat arrived, as the next leaders recorded it, or zero.
func (i Incident) lastSeen() (seen time.Time) {
	for _, m := range i.Moves {
		if m.To.Term == 0 || m.To.PrecedingSilence < 0 {
			continue
		}
		if at := m.To.Began.Add(-m.To.PrecedingSilence); at.After(seen) {
			seen = at
		}
	}
	return seen
}
