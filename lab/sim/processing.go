package sim

import (
	"context"
	"errors"
	"time"

	"github.com/exactly-one/tenure"
)

// Some leaders process a log: they apply its events, which are numbered from 0, in
// fenced transactions that move a cursor from where the batch began. A commit may take
// long, and the connection may be lost before it ends: then the server either finishes
// the commit or rolls back, and the leader does not know which.

// appliedOnce is an invariant, as Violation numbers them: each event of a log is
// applied exactly once, and in order.
const appliedOnce = 12

var (
	errMoved     = errors.New("the cursor is not where the batch began")
	errRowLocked = errors.New("another transaction holds the cursor's row")
)

// batch is the part of the log that a transaction applies.
type batch struct{ from, to int64 }

// processing is what a leader knows about its cursor during one term.
type processing struct {
	process *Process
	term    *tenure.Term
	rnd     *stream
	at      int64
	known   bool
	doubt   bool // the outcome of a commit is unknown
}

// rowPause is the pause between two attempts to lock a row that another transaction
// holds; rowPatience is the number of attempts.
const (
	rowPause    = 5 * time.Millisecond
	rowPatience = 50
)

// apply applies the next events.
func (l *processing) apply(ctx context.Context, work, linger func() error) error {
	if err := l.settle(ctx); err != nil {
		return err
	}
	t := l.process.begin(l.rnd.fork(), l.term.Role().Name(), l.term.Number())
	defer t.close()
	if !l.known {
		if err := l.read(ctx, t); err != nil {
			return err
		}
	}
	b := &batch{l.at, l.at + 1 + int64(l.rnd.below(3))}
	l.known = false // unless all goes well
	if err := work(); err != nil {
		return err
	}
	if err := t.ask(ctx, t.fence); err != nil {
		return err
	}
	if err := l.locked(ctx, t, func() error { return t.move(b) }); err != nil {
		return err
	}
	if err := linger(); err != nil {
		return err
	}
	if err := t.perform(ctx, t.commitSlowly); err != nil {
		l.doubt = true
		return err
	}
	l.at, l.known = b.to, true
	return nil
}

// settle waits for a commit whose outcome is unknown, and then reads the outcome.
func (l *processing) settle(ctx context.Context) error {
	if !l.doubt || l.process.machine.world.server.defects.NoSettle {
		return nil
	}
	t := l.process.begin(l.rnd.fork(), l.term.Role().Name(), l.term.Number())
	defer t.close()
	if err := t.ask(ctx, t.fence); err != nil {
		return err
	}
	if err := l.locked(ctx, t, t.lockCursor); err != nil {
		return err
	}
	if err := l.read(ctx, t); err != nil {
		return err
	}
	l.doubt = false
	return nil
}

// read reads the cursor as it was committed last.
func (l *processing) read(ctx context.Context, t *transaction) error {
	var at int64
	err := t.ask(ctx, func() error {
		at = t.server.cursors[t.role]
		return nil
	})
	if err == nil {
		l.at, l.known = at, true
	}
	return err
}

// locked performs a statement that waits for a row, for a limited time.
func (l *processing) locked(ctx context.Context, t *transaction, effect func() error) error {
	for range rowPatience {
		if err := t.ask(ctx, effect); !errors.Is(err, errRowLocked) {
			return err
		}
		if !l.process.sleep(ctx, rowPause) {
			return ctx.Err()
		}
	}
	return errRowLocked
}

// lockCursor takes the lock of the cursor's row. It is called with World.mu held,
// and so are the others.
func (t *transaction) lockCursor() error {
	for _, other := range t.server.open {
		if other != t && other.role == t.role && other.locks {
			return errRowLocked
		}
	}
	t.locks = true
	return nil
}

// move moves the cursor from where the batch began.
func (t *transaction) move(b *batch) error {
	if err := t.lockCursor(); err != nil {
		return err
	}
	if t.server.cursors[t.role] != b.from && !t.server.defects.NoCompare {
		return errMoved
	}
	t.batch = b
	return nil
}

// commitSlowly commits after a delay. The connection may be lost before that, and the
// commit may fail.
func (t *transaction) commitSlowly(done func(error)) {
	w, rnd := t.server.world, t.server.rnd
	t.committing = true
	takes, fails := rnd.rarely(20*time.Millisecond), rnd.chance(0.1)
	if rnd.chance(0.2) {
		w.after(rnd.between(0, takes), func() {
			if !t.ended {
				w.log("server", "loses the connection of %s during a commit", t.process)
				t.down.send(t.lose)
			}
		})
	}
	w.after(takes+time.Microsecond, func() {
		switch {
		case t.ended:
		case fails:
			t.end("its commit fails")
		default:
			done(t.commit())
		}
	})
}
