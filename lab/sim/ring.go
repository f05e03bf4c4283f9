package sim

import (
	"slices"
	"time"
)

// The ring: the watch connection of each node waits for the node lock of its
// predecessor, so that exactly one node learns immediately when a session ends. It also
// ends sessions of nodes that are silent although the server keeps them. A node that
// knows that its watch connection is down records this, and other nodes watch in its
// place.

// ring makes every watch check its predecessors: a node lock was released, or the
// registry has changed.
func (s *server) ring() {
	for _, b := range slices.Clone(s.backends) {
		b.watch()
	}
}

// blindPause is the interval at which a watch checks nodes for whose locks it does not
// wait.
const blindPause = 100 * time.Millisecond

// watch checks the predecessors in the ring up to the first one whose own watch works,
// and again when one of them will have been silent for too long.
func (b *backend) watch() {
	s := b.server
	if b.again != nil {
		b.again.Stop()
	}
	if b.ended || b.reporting || b.client.process.machine.watchBroken() {
		return // one at a time; then it checks again
	}
	next := time.Duration(-1)
	sooner := func(d time.Duration) {
		if next < 0 || d < next {
			next = d
		}
	}
	if stale := b.stale; stale != nil && !s.holds(stale, nodeLock(stale.incarnation)) {
		b.looked("died", stale.incarnation)
		b.stale = nil
		b.endStaleSession(stale)
		return
	} else if stale != nil && !stale.ended && !s.defects.NoReaper {
		left := stale.beatAt + stale.timing.Lease + b.timing.Margin - s.world.now()
		if left < 0 {
			b.report(func() { stale.terminateUnlessEnded("reaped: its node has a new session") })
			return
		}
		sooner(left + 1)
	}
	if b.checkOthers(sooner) {
		return
	}
	for _, row := range s.predecessors(b) {
		lock := s.locks[nodeLock(row.incarnation)]
		if lock == nil {
			b.looked("died", row.incarnation)
			if !s.defects.UnnoticedDeaths {
				b.recordDeath(row.incarnation)
			}
			return
		}
		left := row.lease + b.timing.Margin - row.silentFor(s)
		if left < 0 && !s.defects.NoReaper {
			b.looked("silent", row.incarnation)
			b.reap(lock.holder)
			return
		}
		sooner(max(left, 0) + 1)
		if !lock.holder.client.process.machine.watchBroken() {
			break
		}
		sooner(blindPause)
	}
	b.looked("", 0)
	if next >= 0 && (next > 1 || !s.defects.NoReaper) {
		b.again = s.world.after(next, b.watch)
	}
}

// predecessors returns the rows of the other nodes that are not dead, in the
// order in which b watches: from the next smaller incarnation down, then from
// the largest.
func (s *server) predecessors(b *backend) []*nodeRow {
	var before, behind []*nodeRow
	for _, row := range slices.Backward(s.inOrder()) {
		switch {
		case row.dead || row.incarnation == b.incarnation:
		case row.incarnation < b.incarnation:
			before = append(before, row)
		default:
			behind = append(behind, row)
		}
	}
	return append(before, behind...)
}

// recordDeath reports to the watch of b that a session has ended. If the process of b
// runs and can be reached, it marks the node dead and notifies the others. Otherwise
// that is left to the nodes that look for silent nodes.
func (b *backend) recordDeath(dead int64) {
	s := b.server
	noticed := s.clock()
	b.report(func() {
		s.world.log("server", "%s saw session %d end", b.client.process, dead)
		s.recordDeath(dead, noticed)
		b.wakeOwn()
	})
}

// endStaleSession reports to the watch of b that an earlier session of its node has
// ended, so that its roles are vacant now.
func (b *backend) endStaleSession(stale *backend) {
	b.report(func() {
		b.server.world.log("server", "%s saw its session %d end", b.client.process, stale.incarnation)
		b.server.notify()
		b.server.ring()
		b.wakeOwn()
	})
}

// wakeOwn wakes the session whose watch has seen a session end: that needs no
// notification.
func (b *backend) wakeOwn() { b.client.process.gate.pass(b.client.noticed) }

// How long a session without a row may stay undetected, and how long after that it is
// not ended.
const (
	watchPeriod   = 30 * time.Second
	strangerGrace = 15 * time.Second
)

// checkOthers checks the sessions that are not in the ring: those of nodes that were
// marked dead, and those whose row a later session has taken over. It reports whether
// there was something to do.
func (b *backend) checkOthers(sooner func(time.Duration)) bool {
	s, now := b.server, b.server.world.now()
	if s.defects.NoReaper {
		return false
	}
	if gone := b.outside; gone != nil && !s.holds(gone, nodeLock(gone.incarnation)) {
		b.outside = nil
		b.endStaleSession(gone)
		return true
	}
	looks := b.looksForStrangers()
	for _, other := range s.backends {
		if other == b || other == b.stale {
			continue
		}
		due := other.strangerAt + watchPeriod + max(other.timing.Lease+b.timing.Margin, b.timing.Lease+b.timing.Margin, strangerGrace)
		switch row := s.nodes[other.node.ID]; {
		case row != nil && row.incarnation == other.incarnation && !row.dead, row != nil && s.defects.DeadHidden:
			continue
		case row != nil && row.incarnation == other.incarnation:
			due, b.outside = other.beatAt+other.timing.Lease+b.timing.Margin, other
		case !looks:
			continue
		case other.strangerAt == 0:
			other.strangerAt = now
			due += now
		}
		if due < now {
			b.report(func() { other.terminateUnlessEnded("reaped: it is outside the ring") })
			return true
		}
		sooner(due - now + 1)
	}
	return false
}

// looksForStrangers reports whether the node of b is one of the three with the oldest
// sessions that watch.
func (b *backend) looksForStrangers() bool {
	older := 0
	for _, row := range b.server.inOrder() {
		if row.incarnation < b.incarnation && !row.dead && !row.session.client.process.machine.watchBroken() {
			older++
		}
	}
	return older < 3
}

// reap makes b end a session that has been silent for too long.
func (b *backend) reap(silent *backend) {
	b.report(func() {
		b.server.reap(silent, b.timing.Margin)
		b.server.ring()
	})
}

// report sends a message to the watch of b and performs its answer.
func (b *backend) report(answer func()) {
	b.reporting = true
	process := b.client.process
	machine, rnd := process.machine, b.server.rnd
	down, up := machine.watchDown.connect(rnd.fork()), machine.watchUp.connect(rnd.fork())
	hear := func() {
		defer down.close()
		if b.ended || process.crashed {
			up.close()
			return
		}
		up.send(func() {
			defer up.close()
			if b.ended {
				return
			}
			b.reporting = false
			answer()
		})
	}
	down.send(func() { process.gate.pass(hear) })
}
