package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/simcalls"
	"github.com/exactly-one/tenure/internal/steps"
)

// transaction is a fenced transaction of a leader, on a separate connection.
type transaction struct {
	id      int64
	server  *server
	process *Process
	role    string
	term    int64
	node    uuid.UUID
	rnd     *stream
	up      *link
	down    *link
	lost    chan struct{} // closed when the client learns that it has ended
	isLost  bool
	fencing bool // has passed the fence and holds the role's row
	ended   bool

	locks      bool   // holds the row of its role's cursor
	batch      *batch // the batch that it applies, or nil
	committing bool   // continues without its connection
}

var errTransactionLost = errors.New("the transaction was lost")

// fencing returns the transactions that hold a role's row.
func (s *server) fencing(role string) []*transaction {
	var fencing []*transaction
	for _, t := range s.open {
		if t.role == role && t.fencing {
			fencing = append(fencing, t)
		}
	}
	return fencing
}

// fence returns nil for a transaction of the role's last term if that term has not
// ended. From then on the transaction holds off a new term. It is called with World.mu
// held.
func (t *transaction) fence() error {
	row := t.server.roles[t.role]
	passes := row != nil && row.term == t.term && row.node == t.node && !row.ended
	t.server.called(simcalls.Call{Kind: simcalls.Fences, Tx: t.id, Passes: passes, Roles: []simcalls.Role{{Name: t.role, Term: t.term, Node: t.node}}})
	if !passes {
		return tenure.ErrFenced
	}
	t.fencing = true
	t.step(steps.Fences)
	return nil
}

// commit ends the transaction with success. It is called with World.mu held.
func (t *transaction) commit() error {
	t.server.flush()
	t.step(steps.Commits)
	t.remove()
	t.server.world.checker.committed(t)
	if t.batch != nil {
		t.server.cursors[t.role] = t.batch.to
		t.server.world.checker.applied(t)
	}
	return nil
}

// end rolls the transaction back from the server's side. It is called with
// World.mu held.
func (t *transaction) end(why string) {
	if t.ended {
		return
	}
	t.server.world.log("server", "ends a transaction of %s, term %d of %s: %s", t.process, t.term, t.role, why)
	t.remove()
	t.down.send(t.lose)
}

func (t *transaction) remove() {
	if t.fencing {
		t.server.called(simcalls.Call{Kind: simcalls.Unfences, Tx: t.id})
	}
	t.step(steps.RollsBack)
	t.ended = true
	t.server.open = slices.DeleteFunc(t.server.open, func(other *transaction) bool { return other == t })
}

func (t *transaction) lose() {
	if !t.isLost {
		t.isLost = true
		close(t.lost)
	}
}

// ask performs one statement of the transaction on the server and waits for the
// answer.
func (t *transaction) ask(ctx context.Context, effect func() error) error {
	return t.perform(ctx, func(done func(error)) {
		t.server.world.after(t.server.rnd.between(20*time.Microsecond, 200*time.Microsecond), func() {
			if !t.ended {
				done(effect())
			}
		})
	})
}

// perform is ask for a statement that calls done when it has finished. It runs with
// World.mu held.
func (t *transaction) perform(ctx context.Context, run func(done func(error))) error {
	p, w := t.process, t.server.world
	p.gate.wait(t.rnd)
	answer := make(chan error, 1)
	w.mu.Lock()
	t.up.send(func() {
		if t.ended {
			t.down.send(t.lose)
			return
		}
		run(func(err error) { t.down.send(func() { answer <- err }) })
	})
	w.mu.Unlock()
	var err error
	select {
	case err = <-answer:
	case <-t.lost:
		err = errTransactionLost
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.gate.wait(t.rnd)
	return err
}

// close closes the connection. When the server notices, it rolls the transaction back,
// unless the transaction is already committing.
func (t *transaction) close() {
	w := t.server.world
	w.mu.Lock()
	defer w.mu.Unlock()
	t.process.forget(t)
	t.down.close()
	t.up.send(func() {
		t.up.close()
		if !t.ended && !t.committing {
			t.remove()
		}
	})
}

// inTx runs a fenced transaction: begin, work, fence, linger, commit. It returns
// nil only if it has committed.
func (p *Process) inTx(ctx context.Context, rnd *stream, role string, term int64, work, linger func() error) error {
	t := p.begin(rnd.fork(), role, term)
	defer t.close()
	if err := t.ask(ctx, func() error { return nil }); err != nil {
		return err
	}
	if err := work(); err != nil {
		return err
	}
	if err := t.ask(ctx, t.fence); err != nil {
		return err
	}
	if err := linger(); err != nil {
		return err
	}
	return t.ask(ctx, t.commit)
}

func (p *Process) begin(rnd *stream, role string, term int64) *transaction {
	p.gate.wait(rnd)
	w := p.machine.world
	w.mu.Lock()
	defer w.mu.Unlock()
	w.server.transactions++
	t := &transaction{
		id: w.server.transactions, server: w.server, process: p, role: role, term: term, node: p.id, rnd: rnd,
		up: p.machine.poolUp.connect(rnd.fork()), down: p.machine.poolDown.connect(rnd.fork()),
		lost: make(chan struct{}),
	}
	if p.crashed || !w.server.up {
		t.ended = true
		t.lose()
		return t
	}
	w.server.open = append(w.server.open, t)
	p.transactions = append(p.transactions, t)
	return t
}
