package sim

// The ring: the watch connection of each node waits for the node lock of its
// predecessor, so that exactly one node is told at once when a session ends.

// bereave grants the wait of the watcher of a backend that has ended. The
// watcher, if it runs and can be reached, marks the dead and tells the others.
func (s *server) bereave(dead *backend) {
	watcher := s.successor(dead)
	if watcher == nil {
		return
	}
	machine, process := watcher.client.process.machine, watcher.client.process
	down, up := machine.watchDown.connect(s.rnd.fork()), machine.watchUp.connect(s.rnd.fork())
	answer := func() {
		defer down.close()
		if watcher.ended {
			up.close()
			return
		}
		up.send(func() {
			s.world.log("server", "%s saw session %d end", process, dead.incarnation)
			s.notify()
			up.close()
		})
	}
	down.send(func() { process.gate.pass(answer) })
}

// successor returns the backend that watches an ended one: that of the next
// larger incarnation, or of the smallest. It returns nil if none is left.
func (s *server) successor(dead *backend) *backend {
	for _, b := range s.backends {
		if b.incarnation > dead.incarnation {
			return b
		}
	}
	if len(s.backends) > 0 {
		return s.backends[0]
	}
	return nil
}
