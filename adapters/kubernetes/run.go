package kubernetes

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/exactly-one/tenure"
)

// run is one run of an elector, with at most one term.
type run struct {
	lock   *Lock
	ctx    context.Context
	cancel context.CancelCauseFunc

	// Set before the run becomes the holder, and not changed afterwards.
	term  *tenure.Term
	guard *tenure.Guard

	// Guarded by lock.mu.
	record resourcelock.LeaderElectionRecord // as last renewed
	expiry *time.Timer                       // resigns when the elector no longer renews
}

// runKey is the key of a lock's run in a context.
type runKey struct{ lock *Lock }

var (
	errNoRun    = fmt.Errorf("%w: start the elector with a context of Lock.Context", tenure.ErrNotLeader)
	errHolding  = fmt.Errorf("%w: the last run of this node has not released it", tenure.ErrHeld)
	errStopping = fmt.Errorf("%w: the node was asked to give up the role", tenure.ErrTermEnded)
)

// Context returns the context to start an elector, or a manager, with. It ends with
// parent. It also ends when the elector's term ends or is asked to end; the cause then
// matches tenure.ErrTermEnded. It is for one run of one elector.
//
// The end of parent alone releases nothing: the elector does, if it has ReleaseOnCancel
// (for a manager, LeaderElectionReleaseOnCancel). Otherwise the role is released when the
// elector has not renewed the term for the duration of its lease.
func (l *Lock) Context(parent context.Context) context.Context {
	r := &run{lock: l}
	ctx, cancel := context.WithCancelCause(parent)
	r.ctx, r.cancel = context.WithValue(ctx, runKey{l}, r), cancel
	// The node campaigns only while the role is vacant, but takes it when it is given it.
	context.AfterFunc(r.ctx, l.node.OnOffer(func(role string) bool {
		return role == l.election.Role().Name() && r.ctx.Err() == nil
	}))
	return r.ctx
}

// runOf returns the run of a context, or nil, and whether the run has had a term. The
// elector releases the role with another context.
func (l *Lock) runOf(ctx context.Context) (r *run, hadTerm bool) {
	r, _ = ctx.Value(runKey{l}).(*run)
	l.mu.Lock()
	defer l.mu.Unlock()
	return r, r != nil && r.term != nil
}

// acquire begins the term of a run.
func (l *Lock) acquire(ctx context.Context, r *run) error {
	if err := l.mayAcquire(r); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, l.patience())
	defer cancel()
	stop := context.AfterFunc(r.ctx, cancel)
	defer stop()
	term, err := l.election.TryAcquire(ctx)
	if err != nil {
		return err
	}
	guard, err := term.Guard()
	if err != nil {
		return err
	}
	l.mu.Lock()
	r.term, r.guard, l.holder = term, guard, r
	l.lastTerm = max(l.lastTerm, term.Number())
	r.expiry = time.AfterFunc(l.config.leadsFor(), r.expire)
	l.mu.Unlock()
	go r.watch() // exits when the term ends, at the latest with the node
	return nil
}

// mayAcquire returns an error if the elector of a run must not acquire the role.
func (l *Lock) mayAcquire(r *run) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case r == nil || r.ctx.Err() != nil:
		return errNoRun
	case l.holder != nil:
		return errHolding
	}
	return nil
}

// patience bounds an attempt to acquire the role, including the waits required by the
// node's settings.
func (l *Lock) patience() time.Duration {
	t := l.node.Timing()
	return 2*t.Lease + t.LockTimeout + t.Settle + t.FailoverWait
}

// watch ends the run with its term.
func (r *run) watch() {
	select {
	case <-r.term.Context().Done():
		r.cancel(context.Cause(r.term.Context()))
	case <-r.term.Stopping():
		r.cancel(errStopping)
	}
}

// renew keeps the term for the longest time the elector then leads. If heartbeats are
// missing, it fails early enough for the elector to step down while the term is valid.
func (r *run) renew(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	ctx, cancel := context.WithTimeout(ctx, r.lock.config.RenewDeadline)
	defer cancel()
	need := r.lock.config.leadsFor()
	if r.term.Valid() && r.term.Remaining() < need {
		if err := r.lock.election.Refresh(ctx); err != nil {
			return err
		}
	}
	l := r.lock
	l.mu.Lock()
	defer l.mu.Unlock()
	switch remaining := r.term.Remaining(); {
	case l.holder != r || remaining == 0:
		return fmt.Errorf("%w: term %d of %s", tenure.ErrTermEnded, r.term.Number(), r.term.Role())
	case remaining < need:
		return fmt.Errorf("%w: term %d of %s is valid for %v without a heartbeat; the elector needs %v",
			tenure.ErrConnection, r.term.Number(), r.term.Role(), remaining, need)
	}
	record.AcquireTime = metav1.NewTime(r.term.AcquiredAt())
	record.LeaderTransitions = int(r.term.Number())
	r.record = record
	r.expiry.Reset(max(need, time.Duration(record.LeaseDurationSeconds)*time.Second))
	return nil
}

// expire resigns: the elector has not renewed its term for longer than it can lead.
func (r *run) expire() {
	if !r.end() {
		return
	}
	l := r.lock
	l.node.Logger().Warn("the elector stopped without releasing the role; resigning", "role", r.term.Role(), "term", r.term.Number())
	ctx, cancel := context.WithTimeout(context.Background(), l.patience())
	defer cancel()
	if err := r.term.Resign(ctx); err != nil {
		l.node.Logger().Warn("resigning failed", "role", r.term.Role(), "term", r.term.Number(), "error", err)
	}
}

// release resigns the term of the elector, if it has one.
func (l *Lock) release(ctx context.Context) error {
	l.mu.Lock()
	r := l.holder
	l.mu.Unlock()
	if r == nil || !r.end() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.patience())
	defer cancel()
	return r.term.Resign(ctx)
}

// end ends the elector's part in the term. It reports whether this call did.
func (r *run) end() bool {
	l := r.lock
	l.mu.Lock()
	ends := l.holder == r
	if ends {
		l.holder = nil
		r.expiry.Stop()
	}
	l.mu.Unlock()
	if ends {
		r.cancel(tenure.ErrResigned)
		r.guard.Done()
	}
	return ends
}
