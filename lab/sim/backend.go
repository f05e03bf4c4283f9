package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/simcalls"
	"github.com/exactly-one/tenure/internal/steps"
)

// Errors that the simulated server reports for a statement.
var (
	errStatementTimeout = errors.New("canceling statement due to statement timeout")
	errLockTimeout      = errors.New("canceling statement due to lock timeout")
)

// backend is the server's process for one session. Its methods are called with
// World.mu held.
type backend struct {
	server      *server
	client      *session
	down        *link // to the client
	incarnation int64
	node        tenure.NodeInfo
	timing      tenure.Timing
	longest     time.Duration // lease in the registry when it began
	installed   uuid.UUID     // the installation that it works with

	held        []lockID      // every lock that it ever acquired, in order
	outside     *backend      // of a node that was marked dead, until its end was reported
	strangerAt  time.Duration // when this backend was first without a row; 0 if it has one
	reapedAt    time.Duration // when it last looked for silent nodes itself
	stale       *backend      // of the same node, before this one, until its end was reported
	fencedSince map[string]time.Duration

	bornAt    time.Duration // when the life of the server began, as was known when the session opened
	upAt      time.Duration // the same, or when the server started
	beatAt    time.Duration // when it began, or did its last heartbeat
	idleUntil time.Duration // when the idle timeout ends the session; 0 for never
	idling    bool          // its timer runs

	running   *statement
	working   *time.Timer // until the running statement ends
	abandon   bool        // the client closed the connection during a statement
	ended     bool
	endedAt   time.Duration
	killed    bool        // ended by an administrator while its client may live
	reporting bool        // a report to its watch is in flight
	again     *time.Timer // of its watch

	stuck    bool // the server neither answers nor counts it as idle
	rowBlock bool // another transaction holds a lock on the node's row
}

// statement is one request on a session, and its answer.
type statement struct {
	name   string
	effect func(*backend) error // runs when the statement ends
	answer func(error)          // runs at the client
}

// receive starts a statement. The idle timer does not run during a statement.
func (b *backend) receive(st *statement) {
	if b.ended {
		b.down.send(func() { b.client.disconnected(errReset) })
		return
	}
	b.running = st
	b.stopIdleTimer()
	if !b.stuck {
		b.execute(st)
	}
}

// execute finishes a statement after a random time, at most the statement
// timeout.
func (b *backend) execute(st *statement) {
	s := b.server
	takes, timeout := s.rnd.between(20*time.Microsecond, 200*time.Microsecond), b.timing.RefreshInterval/2
	if slow := b.client.process.machine.slow; slow > 0 {
		takes += s.rnd.between(0, slow)
	}
	var failure error
	switch {
	case b.rowBlock && st.name == "heartbeat":
		takes, failure = timeout, errLockTimeout
	case takes > timeout:
		takes, failure = timeout, errStatementTimeout
	}
	b.working = s.world.after(takes, func() { b.finish(st, failure) })
}

// finish performs a statement's effect and answers. Only now does the idle
// timer start again, also after a failure.
func (b *backend) finish(st *statement, failure error) {
	if b.ended {
		return
	}
	if failure == nil && b.isStranded() {
		failure = st.stranded()
	}
	if failure == nil {
		b.step(steps.Performs)
		failure = st.effect(b)
	}
	b.running = nil
	if b.abandon {
		b.end("the client closed the connection", false)
		b.freeSlowly()
		return
	}
	b.restartIdleTimer()
	b.down.send(func() {
		st.answer(failure)
		b.server.world.checker.checkSoon()
	})
}

// setStuck puts the backend into a state that the idle timeout does not cover, or
// ends that state. Once the client is gone, only the reaper ends the backend.
func (b *backend) setStuck(stuck bool) {
	if b.ended || b.stuck == stuck || b.client.hungUp || stuck && b.server.dropped {
		return
	}
	b.stuck = stuck
	switch {
	case stuck:
		b.stopIdleTimer()
		if b.running != nil {
			b.working.Stop()
		}
	case b.running != nil:
		b.execute(b.running)
	default:
		b.restartIdleTimer()
	}
}

// disconnect handles the end of the connection by the client. A backend in the middle
// of a statement notices at its end or at the next check of the connection.
func (b *backend) disconnect() {
	if b.ended {
		return
	}
	if b.running == nil && !b.stuck {
		b.end("the client closed the connection", false)
		b.freeSlowly()
		return
	}
	b.abandon = true
	if b.stuck {
		return // only the reaper ends it
	}
	b.server.world.after(time.Second, func() {
		if !b.ended && !b.stuck {
			b.end("the client is gone", false)
			b.freeSlowly()
		}
	})
}

// restartIdleTimer starts the time after which the server ends a session that sends
// nothing.
func (b *backend) restartIdleTimer() {
	if b.stuck {
		return
	}
	b.idleUntil = b.server.world.now() + b.timing.Lease
	if !b.idling {
		b.idling = true
		b.server.world.after(b.timing.Lease, b.onIdle)
	}
}

// stopIdleTimer disables the idle timeout. The timer keeps running, to be reused.
func (b *backend) stopIdleTimer() { b.idleUntil = 0 }

// onIdle ends the session if it has been idle for long enough by now.
func (b *backend) onIdle() {
	b.idling = false
	if b.ended || b.idleUntil == 0 {
		return
	}
	if left := b.idleUntil - b.server.world.now(); left > 0 {
		b.idling = true
		b.server.world.after(left, b.onIdle)
		return
	}
	b.end("idle-session timeout", true)
	b.freeSlowly()
}

// kill ends the session although its client may be alive and lead.
func (b *backend) kill() {
	b.killed = true
	b.terminate("terminating connection due to administrator command")
}

// terminate ends the session as pg_terminate_backend does.
func (b *backend) terminate(why string) {
	b.end(why, true)
	b.freeSlowly()
}

// terminateUnlessEnded is terminate for a backend that may already have ended.
func (b *backend) terminateUnlessEnded(why string) {
	if !b.ended {
		b.terminate(why)
	}
	b.server.ring()
}

// end stops the backend. If notify is set, a FATAL is sent to the client before
// any lock is freed. The caller frees the locks.
func (b *backend) end(why string, notify bool) {
	s := b.server
	b.ended, b.endedAt = true, s.world.now()
	b.ends(why)
	b.stopIdleTimer()
	s.backends = slices.DeleteFunc(s.backends, func(other *backend) bool { return other == b })
	s.world.log("server", "ends session %d of %s: %s", b.incarnation, b.client.process, why)
	if notify {
		fatal := fmt.Errorf("%w: FATAL: %s", errReset, why)
		b.down.send(func() { b.client.disconnected(fatal) })
	}
}

// freeSlowly frees the locks of a dying session, not all at the same instant.
func (b *backend) freeSlowly() {
	s := b.server
	for _, id := range b.held {
		s.world.after(s.rnd.between(10*time.Microsecond, 2*time.Millisecond), func() { s.free(b, id) })
	}
}

// freeAll frees the locks immediately.
func (b *backend) freeAll() {
	for _, id := range b.held {
		b.server.free(b, id)
	}
}

// leave removes the node's row and frees everything, at the node's request.
func (b *backend) leave() {
	if row := b.server.nodes[b.node.ID]; row != nil && row.incarnation == b.incarnation {
		delete(b.server.nodes, b.node.ID)
		b.server.called(simcalls.Call{Kind: simcalls.Leaves, Session: b.incarnation})
		b.server.emit(steps.Step{Kind: steps.Leaves, Session: b.incarnation, Node: b.node.ID.String()})
	}
	b.freeAll()
}

// relock acquires every held lock once more, as a careless renewal does.
func (b *backend) relock() {
	for _, id := range slices.Clone(b.held) {
		if b.server.holds(b, id) {
			b.server.tryLock(b, id)
		}
	}
}
