// Package leaderwatch follows the leader of one role in the database, for programs with
// requests and connections to it.
package leaderwatch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// ErrTermOver is the cause of the end of a [Leadership]'s context.
var ErrTermOver = errors.New("the term of the leader is over")

// Leadership is one term of the role, as the database reports it.
type Leadership struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	expiry *time.Timer

	// Guarded by Watch.mu.
	leader tenure.Leader
}

// Context ends when the database reports the end of the term, and when the leader's lease
// has expired as far as this process knows.
func (l *Leadership) Context() context.Context { return l.ctx }

// Source is where a watch reads the leader.
type Source struct {
	// Read returns the role's leader, or an error matching tenure.ErrNoLeader.
	Read func(context.Context) (tenure.Leader, error)
	// Changed receives a value when the leader may have changed.
	Changed <-chan struct{}
	// Listen, if set, calls wake at such changes until ctx ends or the connection
	// breaks; it is used without Changed.
	Listen func(ctx context.Context, wake func()) error
	// Stop, if set, is called when the watch has ended.
	Stop func()
	Log  *slog.Logger
}

// Watch follows the leader of one role. It is safe for concurrent use.
type Watch struct {
	source Source
	wanted chan struct{} // wakes run for a caller that waits
	done   chan struct{} // closed when run has returned

	mu sync.Mutex
	// Guarded by mu.
	current *Leadership
	changed chan struct{} // closed at the next change of current
	waiting int           // callers of Next
}

// Start begins to follow the leader. The watch ends with ctx.
func Start(ctx context.Context, source Source) *Watch {
	w := &Watch{source: source, wanted: make(chan struct{}, 1), done: make(chan struct{}), changed: make(chan struct{})}
	go w.run(ctx) // exits when ctx ends; Done shows it
	return w
}

// Done is closed when the watch has ended.
func (w *Watch) Done() <-chan struct{} { return w.done }

// Leader returns the latest description of the leadership's leader.
func (w *Watch) Leader(l *Leadership) tenure.Leader {
	w.mu.Lock()
	defer w.mu.Unlock()
	return l.leader
}

// Current returns the present leadership, or nil, and a channel that is closed when it
// changes.
func (w *Watch) Current() (*Leadership, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.current, w.changed
}

// Next returns the present leadership. If there is none, it waits for one. It returns the
// cause of ctx once ctx has ended, so that a caller may call it in a loop.
func (w *Watch) Next(ctx context.Context) (*Leadership, error) {
	w.addWaiting(1)
	defer w.addWaiting(-1)
	for {
		leadership, changed := w.Current()
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case leadership != nil:
			return leadership, nil
		}
		wakeup.Send(w.wanted)
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (w *Watch) addWaiting(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting += n
}

// The bounds of the time between two reads. A watch reads more often while it knows
// no leader, and most often while a caller waits for one.
const (
	minPause     = 10 * time.Millisecond
	waitingPause = 160 * time.Millisecond
	errorPause   = time.Second
	maxPause     = 5 * time.Second
	readTimeout  = 5 * time.Second
)

// run reads the leader until ctx ends.
func (w *Watch) run(ctx context.Context) {
	defer close(w.done)
	if w.source.Stop != nil {
		defer w.source.Stop()
	}
	var listening sync.WaitGroup
	defer listening.Wait()
	if listen := w.source.Listen; listen != nil {
		changed := make(chan struct{}, 1)
		w.source.Changed = changed
		listening.Go(func() { w.listen(ctx, listen, changed) })
	}
	defer w.apply(nil)
	for backoff := minPause; ctx.Err() == nil; {
		readAt := time.Now()
		known, failed := w.poll(ctx)
		pause := backoff
		switch {
		case failed:
			pause = errorPause
		case known > 0:
			pause = min(max(known/2, minPause), maxPause)
			backoff = minPause
		default:
			backoff = min(2*backoff, maxPause)
		}
		if w.pause(ctx, readAt, pause, known <= 0) {
			backoff = minPause
		}
	}
}

// listen receives notifications. While the listener fails, run polls.
func (w *Watch) listen(ctx context.Context, listen func(context.Context, func()) error, changed chan<- struct{}) {
	wake := func() { wakeup.Send(changed) }
	wakeup.Listen(ctx, clocks.System(), errorPause, listen, wake, func(err error) {
		w.source.Log.Warn("listening for notifications failed", "error", err)
		wake()
	})
}

// pause waits for the time between two reads: until d has passed since the last one,
// a change was reported, or, if there is no leader, a caller has waited for
// waitingPause. It reports whether there was a change.
func (w *Watch) pause(ctx context.Context, last time.Time, d time.Duration, vacant bool) (changed bool) {
	report := w.source.Changed
	for {
		if vacant && w.hasWaiters() {
			d = min(d, waitingPause)
		}
		timer := time.NewTimer(time.Until(last.Add(d)))
		select {
		case <-timer.C:
			return changed
		case <-report:
			changed, report, d = true, nil, minPause
		case <-w.wanted:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
		timer.Stop()
	}
}

// hasWaiters reports whether a caller waits for a leader.
func (w *Watch) hasWaiters() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting > 0
}

// poll reads the leader and returns the rest of its lease, 0 if there is no leader.
// After an error the last leader stays known until its lease expires.
func (w *Watch) poll(ctx context.Context) (known time.Duration, failed bool) {
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	leader, err := w.source.Read(limited)
	cancel()
	switch {
	case err == nil:
		w.apply(&leader)
	case errors.Is(err, tenure.ErrNoLeader):
		w.apply(nil)
	case ctx.Err() == nil:
		w.source.Log.Warn("reading the leader failed", "error", err)
		return 0, true
	}
	if err != nil {
		return 0, false
	}
	return leader.ValidFor - time.Since(leader.ReadAt), false
}

// apply records the leader of a read.
func (w *Watch) apply(leader *tenure.Leader) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if leader != nil && !leader.Valid() {
		leader = nil
	}
	current := w.current
	if current != nil && leader != nil && current.leader.Term == leader.Term && current.leader.NodeID == leader.NodeID {
		current.leader = *leader
		current.expiry.Reset(leader.ValidFor - time.Since(leader.ReadAt))
		return
	}
	if current == nil && leader == nil {
		return
	}
	w.endLocked()
	if leader != nil {
		next := &Leadership{leader: *leader}
		next.ctx, next.cancel = context.WithCancelCause(context.Background())
		next.expiry = time.AfterFunc(leader.ValidFor-time.Since(leader.ReadAt), func() { w.expire(next) })
		w.current = next
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// expire ends a leadership after the expiry of its lease.
func (w *Watch) expire(l *Leadership) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current != l {
		return
	}
	if left := l.leader.ValidFor - time.Since(l.leader.ReadAt); left > 0 { // renewed in the meantime
		l.expiry.Reset(left)
		return
	}
	w.endLocked()
	close(w.changed)
	w.changed = make(chan struct{})
}

// endLocked ends the present leadership, if there is one.
func (w *Watch) endLocked() {
	if w.current == nil {
		return
	}
	w.current.expiry.Stop()
	w.current.cancel(ErrTermOver)
	w.current = nil
}
