package series

import (
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/exactly-one/tenure/metrics"
)

// longSilent is the silence after which a node counts as gone, if its series are in the
// way of others: old samples are as far apart.
var longSilent = 2 * resolutions[len(resolutions)-1].step

// makeRoomLocked removes the series with the earliest end, and reports whether there was
// one. If no series has ended, it checks once in a round whether nodes went silent before
// this time, as happens when the samples of a day are read in one round.
func (s *Store) makeRoomLocked(at int64) bool {
	if s.ended.Len() == 0 && at >= s.silenceCheckAt {
		s.silenceCheckAt = at + staleAfter.Milliseconds()
		s.silenceBeforeLocked(time.UnixMilli(at).Add(-longSilent), at)
	}
	oldest := s.ended.Front()
	if oldest == nil {
		return false
	}
	one, _ := oldest.Value.(*series)
	if one.departed != 0 { // its node may come back
		if one.node.evicted == nil {
			one.node.evicted = map[uint64]float64{}
		}
		one.node.evicted[one.labels.Hash()] = one.departed
	}
	s.removeLocked(one)
	return true
}

// removeLocked takes a series out of all indexes.
func (s *Store) removeLocked(one *series) {
	delete(s.series, one.key)
	name := one.labels.Get(model.MetricNameLabel)
	all := withoutIndex(s.named[name], one.inNamed, func(moved *series, to int) { moved.inNamed = to })
	if s.named[name] = all; len(all) == 0 {
		delete(s.named, name)
	}
	if one.node != nil {
		one.node.series = withoutIndex(one.node.series, one.inNode, func(moved *series, to int) { moved.inNode = to })
	}
	if one.inEnded != nil {
		s.ended.Remove(one.inEnded)
	}
}

// withoutIndex returns a list without one element. The last one moves to its place.
func withoutIndex(all []*series, i int, moves func(moved *series, to int)) []*series {
	last := len(all) - 1
	all[i] = all[last]
	moves(all[i], i)
	all[last] = nil
	return all[:last]
}

// silenceBeforeLocked ends all series of the nodes without a sample since a time, the
// longest silence first.
func (s *Store) silenceBeforeLocked(since time.Time, at int64) {
	var silent []*node
	for _, n := range s.nodes {
		if !n.silent && n.at.Before(since) {
			silent = append(silent, n)
		}
	}
	s.silenceLocked(silent, at)
}

// silenceLocked ends all series of some nodes, and keeps their counts. It begins with the
// longest silence.
func (s *Store) silenceLocked(nodes []*node, at int64) {
	slices.SortFunc(nodes, func(a, b *node) int { return a.at.Compare(b.at) })
	for _, n := range nodes {
		n.silent = true
		for _, one := range n.series {
			if !one.over() {
				s.departLocked(one)
			}
			s.endLocked(one, at)
		}
	}
}

// recallLocked undoes the departure of a removed series when it is new again.
func (s *Store) recallLocked(one *series) {
	hash := one.labels.Hash()
	if value, ok := one.node.evicted[hash]; ok {
		delete(one.node.evicted, hash)
		s.departedOfLocked(one).total -= value
	}
}

// departLocked keeps the last value of a gone node's counter. Their number is bounded
// like the number of series: labels may be of any kind.
func (s *Store) departLocked(one *series) {
	if one.kind == metrics.GaugeSeries {
		return
	}
	if of := s.departedOfLocked(one); of != nil {
		one.departed = one.last.value
		of.total += one.departed
	}
}

// comeBackLocked undoes departLocked: the gone node continues to count.
func (s *Store) comeBackLocked(one *series) {
	if one.departed != 0 {
		s.departedOfLocked(one).total -= one.departed
		one.departed = 0
	}
}

// departedOfLocked is the sum of gone nodes' counters like this one; nil if there are too
// many.
func (s *Store) departedOfLocked(one *series) *departed {
	shared := withoutNode(one.labels)
	key := string(shared.Bytes(nil))
	if s.departed[key] == nil {
		if len(s.departed) >= s.max {
			return nil
		}
		s.departed[key] = &departed{labels: shared, kind: one.kind}
	}
	return s.departed[key]
}
