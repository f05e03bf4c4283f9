package sim

import "time"

// gate stops a process, as SIGSTOP does: while it is shut, no timer fires, no backend
// call proceeds or returns, and no message is read. It is guarded by World.mu.
type gate struct {
	world    *World
	rnd      *stream
	resumed  chan struct{} // nil while the process runs
	deferred []func()
}

// wait returns when the process runs. After a pause every caller resumes at its own
// instant, drawn from its own stream.
func (g *gate) wait(rnd *stream) {
	for {
		g.world.mu.Lock()
		resumed := g.resumed
		g.world.mu.Unlock()
		if resumed == nil {
			return
		}
		<-resumed
		time.Sleep(rnd.between(time.Microsecond, 50*time.Microsecond))
	}
}

// pass runs f when the process runs. It is called with World.mu held, and so is
// f.
func (g *gate) pass(f func()) {
	if g.resumed != nil {
		g.deferred = append(g.deferred, f)
		return
	}
	f()
}

// shut stops the process.
func (g *gate) shut() {
	if g.resumed == nil {
		g.resumed = make(chan struct{})
	}
}

// open resumes the process, with everything that is overdue.
func (g *gate) open() {
	if g.resumed == nil {
		return
	}
	close(g.resumed)
	g.resumed = nil
	deferred := g.deferred
	g.deferred = nil
	for _, f := range deferred {
		g.world.after(g.rnd.between(time.Microsecond, 50*time.Microsecond), func() { g.pass(f) })
	}
}
