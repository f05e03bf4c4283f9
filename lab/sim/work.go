package sim

import (
	"context"
	"errors"
	"time"

	"github.com/exactly-one/tenure"
)

// Work configures what leaders do during their terms: fenced transactions, one after
// another. All durations are means.
type Work struct {
	Between     time.Duration // two transactions; 0 for none at all
	Transaction time.Duration // from begin to the fence
	Linger      time.Duration // from the fence to commit
	Stubborn    time.Duration // how long work takes to return after its context has ended
	Term        time.Duration // after which work returns although the term has not ended; 0 for never
	Heedless    bool          // transactions in progress ignore the end of the context
	Polite      bool          // work listens to Stopping
	Processes   bool          // the transactions apply the events of a log
}

// work is one call of a leader's function.
type work struct {
	term int64
	ctx  context.Context
}

var errTired = errors.New("tired of leading")

// lead is the function of Run.
func (p *Process) lead(ctx context.Context, term *tenure.Term, plan Work, rnd *stream) error {
	role, w := term.Role().Name(), p.machine.world
	p.gate.wait(rnd)
	w.mu.Lock()
	p.work[role] = &work{term.Number(), ctx}
	w.recordLed(role, term.Number())
	p.log("leads %s, term %d", role, term.Number())
	w.mu.Unlock()
	err := p.workLoop(ctx, term, plan, rnd)
	returns := rnd.between(0, 100*time.Microsecond) // its own instant
	if ctx.Err() != nil {
		returns += rnd.rarely(plan.Stubborn)
	}
	p.sleep(context.Background(), returns)
	p.gate.wait(rnd)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(p.work, role)
	p.returned[role] = w.now()
	if ctx.Err() == nil {
		w.recordLed(role, term.Number())
	}
	p.log("has stopped its work on %s, term %d", role, term.Number())
	p.log("| work returned: %v; context: %v", err, context.Cause(ctx))
	return err
}

// recordLed records that a role is led now, if the term is its last one and was not ended:
// the term may be shorter than the time between two checks of vacancies.
func (w *World) recordLed(role string, term int64) {
	if row := w.server.roles[role]; row != nil && row.term == term && !row.ended {
		w.led[role] = w.now()
	}
}

// workLoop works until the term ends or is about to end, or until its time is up.
// Transactions that are in progress when the term is about to end are finished; those
// that are in progress when it ends are canceled, unless the work is heedless.
func (p *Process) workLoop(ctx context.Context, term *tenure.Term, plan Work, rnd *stream) error {
	begin, cancel := context.WithCancel(ctx) // new transactions
	defer cancel()
	if plan.Term > 0 {
		defer p.machine.clock.AfterFunc(rnd.rarely(plan.Term), cancel)()
	}
	if plan.Polite {
		defer p.watch(term.Stopping(), cancel)()
	}
	if plan.Heedless {
		ctx = context.WithoutCancel(ctx)
	}
	if plan.Between == 0 {
		<-begin.Done()
	}
	log := &processing{process: p, term: term, rnd: rnd}
	for begin.Err() == nil && p.sleep(begin, rnd.rarely(plan.Between)) {
		work, linger := p.busy(ctx, rnd.rarely(plan.Transaction)), p.busy(ctx, rnd.rarely(plan.Linger))
		transact := func() error { return p.inTx(ctx, rnd, term.Role().Name(), term.Number(), work, linger) }
		if plan.Processes {
			transact = func() error { return log.apply(ctx, work, linger) }
		}
		err := transact()
		if err != nil {
			p.log("transaction of term %d of %s: %v", term.Number(), term.Role(), err)
		}
	}
	switch {
	case !term.Valid():
		return context.Cause(term.Context())
	case rnd.chance(0.5):
		return errTired
	default:
		return nil
	}
}

// busy returns a function that takes d, or until the context ends.
func (p *Process) busy(ctx context.Context, d time.Duration) func() error {
	return func() error {
		if d > 0 && !p.sleep(ctx, d) {
			return ctx.Err()
		}
		return nil
	}
}

// watch calls f when a channel is closed, until the returned function is called.
func (p *Process) watch(closed <-chan struct{}, f func()) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-closed:
			f()
		case <-done:
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
