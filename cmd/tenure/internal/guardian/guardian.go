//go:build unix

package guardian

import (
	"net"
	"syscall"
	"time"
)

// guardian is the state of a guardian process, of its main goroutine.
type guardian struct {
	limits  limits
	control *net.UnixConn
	alarm   *alarm

	command int    // its process id and group
	trust   moment // when trust ends
	graceTo moment // when the time that the command has to end is over; 0: it need not end

	orphaned bool          // the supervisor is gone
	exited   bool          // the command has, descendants perhaps not
	killing  bool          // killing has begun
	pause    time.Duration // until the next kill
	end      end
}

// watch serves the orders until the command and all its descendants have ended.
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
			g.obey(o)
		case <-g.alarm.rings:
			g.checkTime()
		case e, ok := <-ends:
			switch {
			case ok && e.pid == g.command:
				g.commandEnded(e.status)
			case !ok && groupEmpty(g.command):
				return
			case !ok: // the rest of the group are not our children
				ends = nil
			}
		}
		if ends == nil && groupEmpty(g.command) {
			return
		}
	}
}

func (g *guardian) obey(o order) {
	switch {
	case o.Deadline != 0:
		g.trust = o.Deadline
	case o.Signal != 0 && !g.exited:
		_ = syscall.Kill(-g.command, o.Signal) // it may have ended
	case o.Stop != 0:
		g.stop(o.Stop)
	case o.Kill:
		g.kill()
	}
}

// stop asks the command to end. What is left when the time for that is over is
// killed.
func (g *guardian) stop(signal syscall.Signal) {
	if g.graceTo != 0 || g.killing {
		return
	}
	g.graceTo = now().add(g.limits.Grace)
	if g.exited {
		return // its descendants are told already
	}
	g.end.Stopped = true
	_ = syscall.Kill(-g.command, signal)
	_ = syscall.Kill(-g.command, syscall.SIGCONT) // one that is stopped would not hear it
}

// commandEnded notes how the command ended and asks what it has left behind to
// end too.
func (g *guardian) commandEnded(status syscall.WaitStatus) {
	g.exited = true
	g.end.Code = exitCode(status)
	told := g.graceTo != 0
	if !told {
		g.graceTo = now().add(g.limits.Grace)
	}
	if !g.killing {
		signalLeft(g.command, told, syscall.SIGTERM)
	}
}

// kill kills everything, again and again until nothing is left.
func (g *guardian) kill() {
	if !g.killing {
		g.killing, g.pause = true, firstKillPause
		g.end.Stopped = g.end.Stopped || !g.exited
	}
	killTree(g.command, g.exited)
}

// checkTime does what is due.
func (g *guardian) checkTime() {
	switch at := now(); {
	case g.killing:
		g.kill()
		g.pause = min(2*g.pause, lastKillPause)
	case at >= g.killAt():
		g.kill()
	case at >= g.stopAt():
		g.stop(syscall.SIGTERM)
	}
}

// killAt is when everything is killed: before trust ends, or earlier when the
// command had its time to end.
func (g *guardian) killAt() moment {
	at := g.trust.add(-g.limits.Lead)
	if g.graceTo != 0 {
		at = min(at, g.graceTo)
	}
	return at
}

// stopAt is when the command is asked to end because trust may end.
func (g *guardian) stopAt() moment { return g.trust.add(-g.limits.Grace) }

// rearm sets the alarm to what is due next.
func (g *guardian) rearm() {
	at := g.killAt()
	switch {
	case g.killing:
		at = now().add(g.pause)
	case g.graceTo == 0:
		at = min(at, g.stopAt())
	}
	if err := g.alarm.set(at); err != nil {
		g.kill() // without deadlines nothing may run
	}
}
