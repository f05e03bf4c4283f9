package sim

import (
	"slices"
	"time"
)

// flushedWithin is how long the server keeps the record of a commit that did not wait
// for the disk in memory, at most.
const flushedWithin = 600 * time.Millisecond

// logTail is the end of the server's log that is not on its disk: the changes of roles
// since the last commit that was durable. A crash loses it from some position on, and
// a synchronous standby may not have received it.
type logTail struct {
	rnd     *stream
	changes []change // in the order of the log
}

// change is what a commit replaced.
type change struct {
	role   string
	before roleRow
	at     time.Duration
}

// changing records that the row of a role is about to change without a flush.
func (s *server) changing(role string) {
	now := s.world.now()
	s.tail.changes = slices.DeleteFunc(s.tail.changes, func(c change) bool { return now-c.at > flushedWithin })
	s.tail.changes = append(s.tail.changes, change{role, *s.roles[role], now})
}

// flush makes everything that was committed durable.
func (s *server) flush() { s.tail.changes = nil }

// loseTail undoes what a crash loses of the tables.
func (s *server) loseTail() {
	lost := s.drawTail()
	undo(s.roles, lost)
	s.loses(lost)
	if len(lost) > 0 {
		s.world.log("server", "forgets the last %d changes of roles", len(lost))
		s.world.checker.forgotten(s.roles)
		s.recordTables()
	}
	s.flush()
}

// replicateFlushed is replicate for a synchronous standby, which has at least what was
// durable.
func (s *server) replicateFlushed() snapshot {
	tables := s.replicate()
	undo(tables.roles, s.drawTail())
	return tables
}

// drawTail returns the changes that are lost.
func (s *server) drawTail() []change {
	if len(s.tail.changes) == 0 {
		return nil
	}
	return s.tail.changes[s.tail.rnd.below(len(s.tail.changes)+1):]
}

func undo(roles map[string]*roleRow, changes []change) {
	for _, c := range slices.Backward(changes) {
		before := c.before
		roles[c.role] = &before
	}
}
