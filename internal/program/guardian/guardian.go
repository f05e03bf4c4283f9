//go:build unix

package guardian

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// guardian is the state of a guardian process. Only its main goroutine uses it.
type guardian struct {
	limits  limits
	control *net.UnixConn
	alarm   *alarm

	command int    // process id and group of the command
	trust   moment // when trust ends
	graceTo moment // when the grace period ends; 0 if the command was not asked to end

	orphaned bool          // the supervisor has exited
	exited   bool          // the command has exited; descendants may be running
	killing  bool          // killing has begun
	pause    time.Duration // until the next kill
	end      end
}

// awaitTrust waits until trust leaves the command some time. Otherwise the command would
// be asked to end as soon as it has started: this process may have taken longer to start
// than the trust of the first order lasts. Later orders extend the trust. If none does,
// the supervisor kills this process.
func (g *guardian) awaitTrust(orders <-chan order) error {
	for now() >= min(g.stopAt(), g.killAt()) {
		switch o, ok := <-orders; {
		case !ok || o.Stop != 0 || o.Kill:
			return errors.New("the term ended before the command was started")
		case o.Deadline != 0:
			g.trust = o.Deadline
		}
	}
	return nil
}

// watch handles orders until the command and all its descendants have ended.
func (g *guardian) watch(orders <-chan order, ends <-chan ended) {
	for {
		g.rearm()
		select {
		case o, ok := <-orders:
			if !ok {
				orders, g.orphaned = nil, true
				g.kill()
				continue
			}
			g.handleOrder(o)
		case <-g.alarm.rings:
			g.checkTime()
		case e, ok := <-ends:
			switch {
			case ok && e.pid == g.command:
				g.commandEnded(e.status)
			case !ok && groupEmpty(g.command):
				return
			case !ok: // the rest of the group are not children of this process
				ends = nil
			}
		}
		if ends == nil && groupEmpty(g.command) {
			return
		}
	}
}

func (g *guardian) handleOrder(o order) {
	switch {
	case o.Deadline != 0:
		g.trust = o.Deadline
	case o.Signal != 0 && !g.exited:
		_ = syscall.Kill(-g.command, o.Signal) // it may have ended
	case o.Stop != 0:
		g.stop(o.Stop, o.Within)
	case o.Kill:
		g.kill()
	}
}

// stop asks the command to end. After the grace period, it kills the remaining processes.
func (g *guardian) stop(signal syscall.Signal, grace time.Duration) {
	if g.graceTo != 0 || g.killing {
		return
	}
	g.graceTo = now().add(grace)
	if g.exited {
		return // its descendants have been signaled already
	}
	g.end.Stopped = true
	_ = syscall.Kill(-g.command, signal)
	_ = syscall.Kill(-g.command, syscall.SIGCONT) // a stopped process would not handle the signal
}

// commandEnded records how the command ended and asks its remaining descendants
// to end too.
func (g *guardian) commandEnded(status syscall.WaitStatus) {
	g.exited = true
	g.end.Code = exitCode(status)
	signaled := g.graceTo != 0
	if !signaled {
		g.graceTo = now().add(g.limits.Grace)
	}
	if !g.killing {
		signalLeft(g.command, signaled, syscall.SIGTERM)
	}
}

// kill kills everything, repeatedly until nothing is left.
func (g *guardian) kill() {
	if !g.killing {
		g.killing, g.pause = true, firstKillPause
		g.end.Stopped = g.end.Stopped || !g.exited
	}
	killTree(g.command, g.exited)
}

// checkTime takes the due actions.
func (g *guardian) checkTime() {
	switch at := now(); {
	case g.killing:
		g.kill()
		g.pause = min(2*g.pause, lastKillPause)
	case at >= g.killAt():
		g.kill()
	case at >= g.stopAt():
		g.stop(syscall.SIGTERM, g.limits.Grace)
	}
}

// killAt returns when everything is killed: before trust ends, or earlier when
// the grace period ends.
func (g *guardian) killAt() moment {
	at := g.trust.add(-g.limits.Lead)
	if g.graceTo != 0 {
		at = min(at, g.graceTo)
	}
	return at
}

// stopAt returns when the command is asked to end because trust may end.
func (g *guardian) stopAt() moment { return g.trust.add(-g.limits.Grace) }

// rearm sets the alarm to the next due moment.
func (g *guardian) rearm() {
	at := g.killAt()
	switch {
	case g.killing:
		at = now().add(g.pause)
	case g.graceTo == 0:
		at = min(at, g.stopAt())
	}
	if err := g.alarm.set(at); err != nil {
		g.kill() // nothing may run without deadlines
	}
}
