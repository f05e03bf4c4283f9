package cluster

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// viewPause is the minimum time between two reads of the registry. If reads take long, the
// pause is longer, up to the check interval: they take at most a third of the time, and
// each covers many changes. A failed read does not extend the pause: its duration says
// nothing about the next read. pausePerNode makes the pause grow with the cluster, because
// all nodes read the changes.
const (
	viewPause    = 2 * time.Millisecond
	pauseFactor  = 2
	pausePerNode = 200 * time.Microsecond
)

// view caches the registry. After every notification it reads the changes, and after a
// time everything, in case a notification is lost. It is safe for concurrent use.
type view struct {
	query    func(context.Context) ([]tenure.Member, error)
	refresh  func(context.Context) ([]tenure.Member, error) // reads the rows reported as changed; nil: query
	interval time.Duration                                  // the check interval
	reread   time.Duration                                  // the longest time between two reads while nothing is to be polled
	clock    clocks.Clock
	log      *slog.Logger
	wake     chan struct{} // has a value after pollers was increased

	mu      sync.Mutex
	cached  []tenure.Member // replaced, never modified
	nodes   *nodeList       // as of an earlier or the same read; replaced, never modified
	behind  bool            // nodes is of an earlier read
	silence time.Duration   // the longest silence of a dead node not marked dead
	latest  time.Duration   // when the read began, on the monotonic clock
	readAt  time.Duration   // when the last read of all rows began
	reads   uint64          // counts the reads
	changed chan struct{}   // closed at the next read
	failure error           // of the last read, if it failed
	pollers int             // how many need a read every check interval
}

func newView(ask func(context.Context) ([]tenure.Member, error), interval time.Duration, clock clocks.Clock, log *slog.Logger) *view {
	return &view{
		query: ask, interval: interval, reread: interval, clock: clock, log: log,
		wake: make(chan struct{}, 1), changed: make(chan struct{}),
	}
}

// rereadIntervals is the number of check intervals until the registry is read again
// without a reported change: a notification can be lost.
const rereadIntervals = 12

// rereadSpread is the divisor of this time for the random spread of the nodes' reads.
const rereadSpread = 4

// followReports makes the view read the registry only after notifications, and seldom
// without one. The store must send one after every change of a description or a status.
// The refresh reads at least the changed rows.
func (v *view) followReports(refresh func(context.Context) ([]tenure.Member, error)) {
	v.refresh, v.reread = refresh, rereadIntervals*v.interval
}

// members returns the cached members and a channel that is closed at the next read.
func (v *view) members() ([]tenure.Member, <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.cached, v.changed
}

// snapshot returns the nodes, nil before the first read, the time of the read, and a
// channel that is closed at the next one.
func (v *view) snapshot() (nodes *nodeList, readAt time.Duration, changed <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.behind {
		v.nodes, v.behind = cmp.Or(v.nodes, &nodeList{}).next(v.cached), false
	}
	return v.nodes, v.latest, v.changed
}

// longestSilence returns the longest silence, at the last read, of a dead node not marked
// dead, or 0.
func (v *view) longestSilence() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.silence
}

// poll makes the view read the registry now, and then every check interval until
// stop is called.
func (v *view) poll() (stop func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pollers++
	wakeup.Send(v.wake)
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.pollers--
	}
}

// notOlder returns the members as of at most age ago. It reads the registry if the last
// read of all rows began earlier. If the read fails, it returns the members of the last
// read.
func (v *view) notOlder(ctx context.Context, age time.Duration) ([]tenure.Member, error) {
	v.mu.Lock()
	recent := v.reads > 0 && v.clock.Now().Mono-v.readAt <= age
	v.mu.Unlock()
	var err error
	if !recent {
		err = v.read(ctx)
	}
	members, _ := v.members()
	return members, err
}

// read reads the registry once. Of two reads at the same time, the later begun one counts.
func (v *view) read(ctx context.Context) error { return v.readWith(ctx, v.query, true) }

// readWith reads the registry, all rows or at least the changed ones.
func (v *view) readWith(ctx context.Context, query func(context.Context) ([]tenure.Member, error), all bool) error {
	begun := v.clock.Now().Mono
	members, err := query(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failure = err
	if err != nil {
		return err
	}
	if v.reads > 0 && begun < v.latest {
		return nil
	}
	v.silence = 0
	for i := range members {
		if m := &members[i]; unmarked(m) {
			v.silence = max(v.silence, m.SilentFor)
			m.Status, m.StatusBy = tenure.StatusDead, ""
		}
	}
	v.cached, v.behind, v.latest = members, true, begun
	if all {
		v.readAt = begun
	}
	v.reads++
	close(v.changed)
	v.changed = make(chan struct{})
	return nil
}

// unmarked reports whether a node is dead although the registry does not say
// so: it has been silent for longer than its lease.
func unmarked(m *tenure.Member) bool {
	return m.Status != tenure.StatusDead && m.SilentFor > m.Lease
}

// follow reads the registry repeatedly until ctx ends. If all rows were read just before,
// the first read covers only later changes.
func (v *view) follow(ctx context.Context, wakeups <-chan struct{}) {
	for reported := true; ctx.Err() == nil; {
		begun := v.clock.Now().Mono
		err := v.readNext(ctx, reported)
		if err != nil && ctx.Err() == nil && !errors.Is(err, tenure.ErrSessionLost) {
			v.log.Warn("reading the registry of nodes failed", "error", err)
		}
		pause := viewPause
		if err == nil {
			members, _ := v.members()
			pause = max(pause, time.Duration(len(members))*pausePerNode, pauseFactor*(v.clock.Now().Mono-begun))
			pause = min(pause, max(v.interval, viewPause))
		}
		wakeup.AwaitOn(ctx, v.clock, pause, nil)
		reported = v.awaitNext(ctx, pause, wakeups)
	}
}

// readNext reads the registry: only the changes if a report is the reason, unless all rows
// are due.
func (v *view) readNext(ctx context.Context, reported bool) error {
	v.mu.Lock()
	recent := v.reads > 0 && v.failure == nil && v.clock.Now().Mono-v.readAt < v.reread
	v.mu.Unlock()
	if reported && recent && v.refresh != nil {
		return v.readWith(ctx, v.refresh, false)
	}
	return v.read(ctx)
}

// awaitNext waits until the registry has to be read again, a pause after the last read,
// and returns whether a report is the reason.
func (v *view) awaitNext(ctx context.Context, pause time.Duration, wakeups <-chan struct{}) (reported bool) {
	passed := make(chan struct{})
	defer v.clock.AfterFunc(max(v.untilNext(pause), viewPause), func() { close(passed) })()
	select {
	case <-wakeups:
		return true
	case <-v.wake:
	case <-passed:
	case <-ctx.Done():
	}
	return false
}

// untilNext returns when all rows have to be read again, a pause after a read.
func (v *view) untilNext(pause time.Duration) time.Duration {
	period := v.period()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.failure != nil {
		return period - pause
	}
	return period - (v.clock.Now().Mono - v.readAt)
}

// period returns the longest time between the last read and the next one. After a failure,
// and while a silent node is not marked dead, no notification can be expected.
func (v *view) period() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.reread <= v.interval || v.pollers > 0 || v.failure != nil || v.silence > 0 {
		return v.interval
	}
	return v.reread - rand.N(v.reread/rereadSpread)
}
