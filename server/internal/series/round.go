package series

import (
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/exactly-one/tenure/internal/printable"
	"github.com/exactly-one/tenure/metrics"
)

// The metrics with values by the store itself.
const (
	isLeaderMetric = canonicalPrefix + "leader_is_leader"
	nodeUpMetric   = canonicalPrefix + "node_up"

	nodeReportingMetric = canonicalPrefix + "node_reporting"
)

// Node is a node known to the cluster.
type Node struct {
	ID    uuid.UUID
	Name  string
	Alive bool     // it has a session, or may have
	Leads []string // roles, as the database has it now

	Host    string    // where it runs
	Started time.Time // when the process started
	Died    time.Time // the last heartbeat of a node that is not alive
}

// Complete ends a round of snapshots at a time of the database's clock. Dead, unknown and
// long silent nodes no longer have values.
//
// Every known role and every known node has a separate series tenure_leader_is_leader of
// 0: a sum over the leaders is 0 and not nothing when no node leads. A leader by the
// database has 1 for its role, also if it sends no samples, or has led only since the
// last one.
//
// The series tenure_node_up of a name is 1 if a live node has the name, and 0 if its node
// died and no other replaced it. A node that leaves has no series. Each live node has
// tenure_node_reporting, which is 1 if it sends samples, else 0.
//
// It returns how many series of the round were left out because there are too many.
func (s *Store) Complete(now time.Time, roles []string, nodes []Node) (left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.round++
	at := now.UnixMilli()
	alive := map[uuid.UUID]bool{}
	for _, n := range nodes {
		alive[n.ID] = n.Alive
	}
	var silent []*node
	for id, n := range s.nodes {
		if !n.silent && (!alive[id] || now.Sub(n.at) > staleAfter) {
			silent = append(silent, n)
		}
	}
	s.silenceLocked(silent, at-1) // the store itself may have a value of now
	for _, role := range roles {
		s.setLocked(at, 0, model.MetricNameLabel, isLeaderMetric, "role", printable.Label(role))
	}
	for _, known := range nodes {
		n := s.nodes[known.ID]
		who := []string{nodeLabel, known.ID.String(), nodeNameLabel, printable.Label(known.Name)}
		s.setUnlessMeasuredLocked(at, n, append(slices.Clone(who), model.MetricNameLabel, isLeaderMetric)...)
		for _, role := range known.Leads {
			s.leadLocked(at, append(slices.Clone(who), model.MetricNameLabel, isLeaderMetric, "role", printable.Label(role))...)
		}
	}
	s.setPresenceLocked(at, nodes)
	s.forgetLocked(at)
	left, s.left = s.left, 0
	return left
}

// setLocked gives a series of the store's own a value.
func (s *Store) setLocked(at int64, value float64, pairs ...string) {
	if one := s.findLocked(labels.FromStrings(pairs...).WithoutEmpty(), metrics.GaugeSeries, at); one != nil {
		one.setIn = s.round
		s.appendLocked(one, sample{at, value})
	}
}

// leadLocked sets a series to 1, whatever the node has measured.
func (s *Store) leadLocked(at int64, pairs ...string) {
	one := s.findLocked(labels.FromStrings(pairs...).WithoutEmpty(), metrics.GaugeSeries, at)
	if one == nil {
		return
	}
	one.setIn = s.round
	if one.last.at < at || one.last.value != 1 {
		s.appendLocked(one, sample{at, 1})
	}
}

// setUnlessMeasuredLocked sets a series to 0, unless the node has measured it in its last
// snapshot. It can: the sum of many roles has no label for the role.
func (s *Store) setUnlessMeasuredLocked(at int64, n *node, pairs ...string) {
	one := s.findLocked(labels.FromStrings(pairs...).WithoutEmpty(), metrics.GaugeSeries, at)
	if one == nil {
		return
	}
	one.setIn = s.round
	if n == nil || n.silent || one.seenIn != n.snapshot {
		s.appendLocked(one, sample{at, 0})
	}
}

// forgetLocked ends the store's own series of unknown roles and nodes, drops old samples,
// and then removes empty series.
func (s *Store) forgetLocked(now int64) {
	oldest := now - Retention.Milliseconds()
	for _, one := range s.series {
		if one.setIn != 0 && one.setIn != s.round {
			s.endLocked(one, now)
			one.setIn = 0 // the series that its node measures continues
		}
		one.drop(now)
		if one.last.at < oldest {
			s.removeLocked(one)
		}
	}
	for id, n := range s.nodes {
		// Before, its samples could come again, from the database.
		if len(n.series) == 0 && n.silent && n.at.UnixMilli() < oldest {
			delete(s.nodes, id)
		}
	}
}

// AllReport reports whether each living node of some nodes sends samples.
func (s *Store) AllReport(nodes []Node) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return !slices.ContainsFunc(nodes, func(known Node) bool {
		n := s.nodes[known.ID]
		return known.Alive && (n == nil || n.silent)
	})
}

// Len is how many series are kept.
func (s *Store) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.series)
}
