package sim

import "cmp"

// The ring: the watch connection of each node waits for the node lock of its
// predecessor, so that exactly one node is told at once when a session ends.

// ring has every watcher look at its predecessor: a node lock was freed, or the
// registry has changed.
func (s *server) ring() {
	for _, b := range s.backends {
		if row := s.predecessor(b); row != nil && s.locks[nodeLock(row.incarnation)] == nil {
			b.mourn(row.incarnation)
		}
	}
}

// predecessor returns the row that the watch of b waits for: that of the next
// smaller incarnation, or of the largest. It returns nil if b is alone.
func (s *server) predecessor(b *backend) *nodeRow {
	var before, last *nodeRow
	for _, row := range s.nodes {
		if row.dead || row.incarnation == b.incarnation {
			continue
		}
		if row.incarnation < b.incarnation && (before == nil || row.incarnation > before.incarnation) {
			before = row
		}
		if last == nil || row.incarnation > last.incarnation {
			last = row
		}
	}
	return cmp.Or(before, last)
}

// mourn tells the watch of b that a session has ended. If its process runs and
// can be reached, it marks the node dead and tells the others. Nobody else does:
// a watcher that is cut off leaves it to those who look for silent nodes.
func (b *backend) mourn(dead int64) {
	if b.mourns {
		return // one at a time; then it looks again
	}
	b.mourns = true
	s, process := b.server, b.client.process
	machine := process.machine
	down, up := machine.watchDown.connect(s.rnd.fork()), machine.watchUp.connect(s.rnd.fork())
	answer := func() {
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
			s.world.log("server", "%s saw session %d end", process, dead)
			b.mourns = false
			s.bury(dead)
		})
	}
	down.send(func() { process.gate.pass(answer) })
}
