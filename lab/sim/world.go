package sim

import (
	"sync"
	"time"
)

// Network holds the properties of all paths.
type Network struct {
	Least, Most time.Duration // latency, one way
	Loss        float64       // part of the notifications that are lost

	// Steady removes chance: everything takes its least time, and the messages of each
	// machine take a little longer than those of the machine before it.
	Steady bool
}

// World is one simulated installation. It must be created inside a synctest bubble.
type World struct {
	seed    uint64
	network Network
	start   time.Time

	// Transcript is what happened.
	Transcript *Transcript

	// mu guards everything simulated, in all files, unless said otherwise. It is
	// never held while the engine is called: the engine calls back.
	mu        sync.Mutex
	server    *server
	machines  []*Machine
	processes []*Process // all that ever ran
	checker   *checker
	replay    *replay
	closing   bool // no new process starts
	stopped   bool // no new event happens

	roleNames []string
	led       map[string]time.Duration // by role: when work in its last term last began or returned
	group     sync.WaitGroup           // everything that processes do on their own
}

// NewWorld returns a world with a server and no machines, in which the named
// roles are to be led.
func NewWorld(seed uint64, network Network, roles ...string) *World {
	w := &World{seed: seed, network: network, roleNames: roles, led: map[string]time.Duration{}, start: time.Now(), Transcript: newTranscript(5000)}
	w.checker, w.replay = newChecker(w), newReplay(w)
	w.server = newServer(w)
	return w
}

// now is the time since the start; it is exact, and the same for all machines.
func (w *World) now() time.Duration { return time.Since(w.start) }

// after runs f under World.mu after d, unless the world has stopped by then.
func (w *World) after(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, func() {
		w.do(func() bool { f(); return true })
	})
}

// do runs f under World.mu, unless the world has stopped, and returns its result.
func (w *World) do(f func() bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.stopped && f()
}

// log adds to the transcript.
func (w *World) log(actor, format string, args ...any) {
	w.Transcript.add(w.now(), actor, format, args...)
}

// alive returns the processes that have not crashed.
func (w *World) alive() []*Process {
	var alive []*Process
	for _, m := range w.machines {
		if p := m.process; p != nil && !p.crashed {
			alive = append(alive, p)
		}
	}
	return alive
}

// Close ends every process gracefully, waits for their ends, and stops all events.
func (w *World) Close() {
	w.mu.Lock()
	w.closing = true
	for _, p := range w.processes { // one that has crashed may still be ending
		p.releaseForeign()
	}
	for _, m := range w.machines {
		if m.process != nil {
			m.process.releaseForeign()
			m.process.end()
		}
	}
	w.mu.Unlock()
	w.group.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
}
