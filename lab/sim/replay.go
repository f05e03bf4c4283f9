package sim

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/exactly-one/tenure/internal/steps"
	"github.com/exactly-one/tenure/lab/model/trace"
)

// replay checks the steps of a world against the models while they happen.
type replay struct {
	world *World

	mu      sync.Mutex // a leaf
	checker *trace.Checker
	keep    bool
	history []steps.Step // if keep is set
	off     bool
}

func newReplay(w *World) *replay { return &replay{world: w, checker: trace.New()} }

// Record implements steps.Recorder for the server.
func (r *replay) Record(s steps.Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.off {
		return
	}
	s.At = r.world.now()
	if s.Kind == steps.GetsAnswer {
		s.Trust = s.Left()
	}
	if r.keep {
		r.history = append(r.history, s)
	}
	if r.checker.Failure() == nil {
		if r.checker.Record(s); r.checker.Failure() != nil {
			r.world.log("replay", "VIOLATION %v", r.checker.Failure())
			r.world.Transcript.freeze()
		}
	}
}

// stop ends the replay: what follows is in no model.
func (r *replay) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.off = true
}

// violation returns the first step that the models do not allow, or nil.
func (r *replay) violation() *Violation {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.checker.Failure()
	if err == nil {
		return nil
	}
	v := &Violation{Invariant: modeled, What: err.Error()}
	if d, ok := errors.AsType[*trace.Disallowed](err); ok {
		v.At = d.Step.At
	}
	return v
}

// processSteps records the steps of one process until it crashes: after that its
// goroutines still have to end.
type processSteps struct{ process *Process }

func (p processSteps) Record(s steps.Step) {
	if !p.process.silent.Load() {
		p.process.machine.world.replay.Record(s)
	}
}

func (p *Process) recording(ctx context.Context) context.Context {
	return steps.With(ctx, processSteps{p})
}

// emit emits a step of the server.
func (s *server) emit(st steps.Step) { s.world.replay.Record(st) }

// step emits a step of the server for a session.
func (b *backend) step(kind steps.Kind) {
	b.server.emit(steps.Step{Kind: kind, Session: b.incarnation})
}

// joins emits that a session was opened.
func (b *backend) joins() {
	b.server.emit(steps.Step{
		Kind: steps.Joins, Node: b.node.ID.String(), Session: b.incarnation,
		Lease: b.timing.Lease, Margin: b.timing.Margin, FailoverWait: b.timing.FailoverWait, Synchronous: b.timing.SynchronousFailover,
	})
}

// roleStep emits a step of the server for a role.
func (b *backend) roleStep(kind steps.Kind, role string, term int64) {
	b.server.emit(steps.Step{Kind: kind, Session: b.incarnation, Role: role, Term: term})
}

// ends emits the end of a session.
func (b *backend) ends(why string) {
	switch {
	case b.killed:
		b.step(steps.Kills)
	case strings.HasPrefix(why, "reaped"):
		b.step(steps.Reaps)
	case strings.HasPrefix(why, "idle"):
		b.step(steps.IdleEnds)
	default:
		b.step(steps.Ends)
	}
}

// roleOf returns the role of a lock, or "".
func (s *server) roleOf(id lockID) string {
	for name, row := range s.roles {
		if id == (lockID{key: row.key}) {
			return name
		}
	}
	return ""
}

// terms returns the last term of each role, and which ones their leaders have ended.
func (s *server) terms() (last map[string]int64, ended map[string]bool) {
	last, ended = map[string]int64{}, map[string]bool{}
	for name, row := range s.roles {
		last[name], ended[name] = row.term, row.ended && row.clean()
	}
	return last, ended
}

// loses emits which terms a crash left in the table.
func (s *server) loses(lost []change) {
	if len(lost) == 0 {
		return
	}
	st := steps.Step{Kind: steps.Loses}
	st.Terms, st.Ended = s.terms()
	s.emit(st)
}

// promotes emits what the tables of a promoted replica have.
func (s *server) promotes() {
	st := steps.Step{Kind: steps.Promotes}
	st.Terms, st.Ended = s.terms()
	for id, row := range s.nodes {
		st.Rows = append(st.Rows, steps.Row{Node: id.String(), Heartbeat: min(s.world.now(), s.away(row.lastHeartbeat)), Lease: row.lease})
	}
	s.emit(st)
}

// clockSteps emits that the clock of the server was set.
func (s *server) clockSteps(by time.Duration) {
	st := steps.Step{Kind: steps.ClockSteps, By: by}
	if by > 0 {
		st.Excuse = s.longestTrust()
	}
	s.emit(st)
}

// step emits a step of a transaction.
func (t *transaction) step(kind steps.Kind) {
	t.server.emit(steps.Step{Kind: kind, Tx: t.id, Role: t.role, Term: t.term, Node: t.node.String()})
}

// takes emits that a session has locked a role.
func (b *backend) takes(id lockID) {
	if role := b.server.roleOf(id); role != "" {
		b.roleStep(steps.TakesLock, role, 0)
	}
}
