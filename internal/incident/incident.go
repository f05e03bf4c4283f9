// Package incident groups related changes of roles and nodes, such as the death of a node
// and the moves of its roles. It describes each group in a sentence. It is pure: it reads
// no clock and no database.
package incident

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/history"
)

// Kind is the kind of an incident.
type Kind string

// The kinds of incidents.
const (
	Crash      Kind = "crash"      // a node ended without leaving
	Silence    Kind = "silence"    // a node sent no heartbeat until its lease expired
	Outage     Kind = "outage"     // no node reached the database
	Restart    Kind = "restart"    // the server lost its locks, but no outage is recorded
	Drain      Kind = "drain"      // a node was drained
	Shutdown   Kind = "shutdown"   // a node or its elections stopped
	Deployment Kind = "deployment" // several nodes were replaced one after another
	Rebalance  Kind = "rebalance"  // nodes handed roles over without a request
	Change     Kind = "change"     // a leader gave up a role, or was asked to
)

// Changes are the records to group, each in any order.
type Changes struct {
	Terms   []history.Term
	Nodes   []history.NodeChange
	Outages []history.Outage
}

// Move is the end of a term and the next term of the role.
type Move struct {
	From history.Term
	To   history.Term // its number is 0 while no node leads the role
}

// needsLeader reports whether the role needs a next term: it was not retired, and its
// work was not completed.
func (m Move) needsLeader() bool { return m.From.Retired.IsZero() && !m.completed() }

func (m Move) completed() bool { return m.From.Reason == history.EndCompleted }

// Incident is a group of changes with one cause.
type Incident struct {
	Kind  Kind
	Began time.Time // the cause: as of the last heartbeat if nodes fell silent
	Ended time.Time // when all roles were led again, or zero
	Nodes []Node    // that it is about, in the order of their changes
	By    string    // the requester, if any
	Moves []Move    // in the order of the ends

	Outage *history.Outage // of the kind Outage

	cause   time.Time // when it was caused, if recorded by a change of a node
	stopped time.Time // of a deployment, when the last node began to stop
}

// ID identifies the incident while more changes become part of it.
func (i Incident) ID() string {
	at, node := i.cause, uuid.Nil
	if len(i.Moves) > 0 && at.IsZero() {
		at = i.Moves[0].From.Ended
	}
	if i.Outage != nil {
		at = i.Outage.Began
	}
	if len(i.Nodes) > 0 {
		node = i.Nodes[0].ID
	}
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(node[:], uint64(at.UnixMicro())))
	return hex.EncodeToString(sum[:8])
}

// unobserved reports whether the incident is a crash unobserved by any node: the next
// leaders found the locks free.
func (i Incident) unobserved() bool {
	return i.Kind == Crash && slices.ContainsFunc(i.Moves, func(m Move) bool { return m.From.Cause == history.CauseUnobserved })
}

// Lasted is for how long the incident lasted, 0 while it lasts.
func (i Incident) Lasted() time.Duration {
	if i.Ended.IsZero() {
		return 0
	}
	return i.Ended.Sub(i.Began)
}

// Unplanned reports whether the incident was a fault, and not requested.
func (i Incident) Unplanned() bool {
	return i.Kind == Crash || i.Kind == Silence || i.Kind == Outage || i.Kind == Restart
}

// Vacant returns how many of its roles have no leader.
func (i Incident) Vacant() (n int) {
	for _, m := range i.Moves {
		if m.To.Term == 0 && m.needsLeader() {
			n++
		}
	}
	return n
}

// Node is a node of an incident.
type Node struct {
	ID   uuid.UUID
	Name string
}

// How far changes of one incident may be apart.
const (
	window     = 10 * time.Second // the ends of the terms of one node
	deployment = 2 * time.Minute  // the stops of two nodes of one deployment
)

// Group returns the incidents behind the changes, the latest first.
func Group(changes Changes) []Incident {
	g := newGrouping(changes)
	g.addOutages(changes.Outages)
	for _, m := range movesOf(changes.Terms) {
		g.addMove(*m)
	}
	for _, n := range g.nodes {
		g.addNode(n)
	}
	incidents := g.mergeDeployments()
	for _, i := range incidents {
		i.finish()
	}
	slices.SortStableFunc(incidents, func(a, b *Incident) int { return b.Began.Compare(a.Began) })
	all := make([]Incident, len(incidents))
	for i, one := range incidents {
		all[i] = *one
	}
	return all
}

// movesOf returns the moves of all roles, in the order of the ends.
func movesOf(terms []history.Term) []*Move {
	byRole := map[string][]*history.Term{}
	for i := range terms {
		byRole[terms[i].Role] = append(byRole[terms[i].Role], &terms[i])
	}
	moves := make([]*Move, 0, len(terms))
	for _, of := range byRole {
		slices.SortFunc(of, func(a, b *history.Term) int { return a.Began.Compare(b.Began) })
		for i, t := range of {
			if t.Ended.IsZero() {
				continue
			}
			m := &Move{From: *t}
			if i+1 < len(of) {
				m.To = *of[i+1]
			}
			moves = append(moves, m)
		}
	}
	slices.SortFunc(moves, func(a, b *Move) int {
		return cmp.Or(a.From.Ended.Compare(b.From.Ended), strings.Compare(a.From.Role, b.From.Role))
	})
	return moves
}

// finish sets when the incident ended, and when it began if nodes had been silent, or if no
// node observed a crash: at the last heartbeat.
func (i *Incident) finish() {
	led := true
	for _, m := range i.Moves {
		if (i.Kind == Silence || i.unobserved()) && m.To.Term > 0 && m.To.PrecedingSilence >= 0 {
			if seen := m.To.Began.Add(-m.To.PrecedingSilence); seen.Before(i.Began) {
				i.Began = seen
			}
		}
		led = led && (m.To.Term > 0 || !m.needsLeader())
		if m.To.Term > 0 && m.To.Began.After(i.Ended) {
			i.Ended = m.To.Began
		}
	}
	switch {
	case !led:
		i.Ended = time.Time{}
	case i.Ended.IsZero():
		i.Ended = i.lastEnd()
	}
}
