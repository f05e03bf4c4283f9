package tenure

import (
	"context"
	"sync"
)

// Guard keeps a piece of work within a term: the role is not released until the
// guard is done. Obtain it with [Term.Guard] or [Election.Guard] and call Done
// when the work has returned.
type Guard struct {
	term *Term
	once sync.Once
}

// Guard registers a piece of work with the current term; see [Term.Guard].
func (e *Election) Guard() (*Guard, error) {
	if term := e.current.Load(); term != nil {
		return term.Guard()
	}
	return nil, ErrNotLeader
}

// Guard registers a piece of work with the term. The error matches ErrNotLeader if the
// term is not valid or was asked to end.
func (t *Term) Guard() (*Guard, error) {
	t.work.Lock()
	defer t.work.Unlock()
	if t.work.closed || !t.Valid() {
		return nil, ErrNotLeader
	}
	t.work.guards++
	return &Guard{term: t}, nil
}

// Term returns the guard's term.
func (g *Guard) Term() *Term { return g.term }

// Context returns the context of the guard's term.
func (g *Guard) Context() context.Context { return g.term.ctx }

// Stopping returns a channel that is closed when the guard's term is asked to end. Unlike
// [Term.Stopping], it does not change when the term's context is canceled.
func (g *Guard) Stopping() <-chan struct{} { return g.term.stoppingChannel() }

// Valid reports whether the guard's term is valid.
func (g *Guard) Valid() bool { return g.term.Valid() }

// Done reports the work as returned. Only the first call counts.
func (g *Guard) Done() {
	g.once.Do(func() {
		g.term.work.Lock()
		g.term.work.guards--
		last := g.term.work.guards == 0
		g.term.workReturnsLocked()
		g.term.work.Unlock()
		if last {
			g.term.advance()
		}
	})
}

// mainReturned records the return of the function of Run, or of the work of Campaign's
// caller, and advances the end of the term.
func (t *Term) mainReturned() {
	t.clearMain()
	t.advance()
}

func (t *Term) clearMain() {
	t.work.Lock()
	defer t.work.Unlock()
	t.work.body = false
	t.workReturnsLocked()
}
