package tenure

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// LeaderChange is a change of leadership.
type LeaderChange struct {
	Role     string
	Previous *Leader // nil if nobody led, or at the start of the observation
	Leader   *Leader // nil if nobody leads now
}

// Listener is implemented by a [Backend] that tells of news without a session.
type Listener interface {
	// Listen calls wake, in this goroutine, when it has begun to listen and
	// whenever something about the elections may have changed. It returns nil
	// when the context ends, and an error when it cannot listen any more.
	Listen(ctx context.Context, wake func()) error
}

// Observe tells who leads the named roles, or all roles if none is named: first
// who leads now, then every change that can be seen. News of a vacancy arrives
// at once and who leads next is looked up in the moments after it; in case news
// is lost, the database is asked every CheckInterval. A slow receiver misses
// intermediate leaders, never the last one. The channel is closed when the
// context ends or the node closes.
func (n *Node) Observe(ctx context.Context, roles ...Role) <-chan LeaderChange {
	changes := make(chan LeaderChange)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closing {
		close(changes)
		return changes
	}
	wake := make(chan struct{}, 1)
	n.subscribers[wake] = struct{}{}
	n.group.Add(1)
	go func() { // ends with the context or the node; Close waits for it
		defer n.group.Done()
		defer close(changes)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(n.ctx, cancel)()
		o := newObservation(n.backend, n.cfg, roles)
		o.log = n.log
		o.run(ctx, wake, changes)
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.subscribers, wake)
	}()
	return changes
}

// Subscribe returns a channel that receives whenever something about the elections
// or the nodes may have changed, and when the node's session begins or ends;
// what was not received yet is not repeated. stop ends it; the channel is never
// closed.
func (n *Node) Subscribe() (news <-chan struct{}, stop func()) {
	wake := make(chan struct{}, 1)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.subscribers[wake] = struct{}{}
	return wake, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.subscribers, wake)
	}
}

// notifySubscribersLocked wakes the observers.
func (n *Node) notifySubscribersLocked() {
	for wake := range n.subscribers {
		notify(wake)
	}
}

func notify(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// Observe is [Node.Observe] for programs that take no part in elections. Of the
// configuration it uses CheckInterval, Logger and Clock. The channel is closed,
// and everything that Observe started has ended, when the context ends.
func Observe(ctx context.Context, backend Backend, cfg Config, roles ...Role) <-chan LeaderChange {
	o := newObservation(backend, cfg.withDefaults(), roles)
	changes, wake := make(chan LeaderChange), make(chan struct{}, 1)
	go func() { // ends with the context; its end closes the channel
		defer close(changes)
		var listening sync.WaitGroup
		if listener, ok := backend.(Listener); ok {
			listening.Go(func() { o.listen(ctx, listener, wake) })
		}
		o.run(ctx, wake, changes)
		listening.Wait()
	}()
	return changes
}

// observation follows the leaders of some roles.
type observation struct {
	backend  Backend
	roles    []string
	interval time.Duration
	clock    Clock
	log      *slog.Logger
	known    map[string]Leader
}

func newObservation(backend Backend, cfg Config, roles []Role) *observation {
	o := &observation{
		backend: backend, interval: cfg.CheckInterval, clock: cfg.Clock, log: cfg.Logger, known: map[string]Leader{},
	}
	for _, role := range roles {
		o.roles = append(o.roles, role.Name())
	}
	return o
}

// recheckDelays is when to look again after news: a vacancy is announced, the term
// that begins shortly after is not.
var recheckDelays = [...]time.Duration{
	10 * time.Millisecond, 40 * time.Millisecond, 200 * time.Millisecond, time.Second, 3 * time.Second,
}

// run looks at the leaders until the context ends.
func (o *observation) run(ctx context.Context, wake <-chan struct{}, changes chan<- LeaderChange) {
	for looked := len(recheckDelays); ; {
		if !o.poll(ctx, changes) {
			return
		}
		pause := o.interval
		if looked < len(recheckDelays) {
			pause = min(pause, recheckDelays[looked])
			looked++
		}
		if o.pause(ctx, wake, pause) {
			looked = 0
		}
	}
}

// poll reports what has changed, and whether the context still lives.
func (o *observation) poll(ctx context.Context, changes chan<- LeaderChange) bool {
	limited, cancel := context.WithTimeout(ctx, max(o.interval, time.Second))
	leaders, err := o.backend.Leaders(limited, o.roles...)
	cancel()
	if err != nil {
		if ctx.Err() == nil {
			o.log.Warn("looking up the leaders failed", "error", err)
		}
		return ctx.Err() == nil
	}
	for _, change := range o.compare(leaders) {
		select {
		case changes <- change:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// listen passes the backend's news on. While that does not work, looking every
// interval has to do.
func (o *observation) listen(ctx context.Context, listener Listener, wake chan<- struct{}) {
	for ctx.Err() == nil {
		err := listener.Listen(ctx, func() { notify(wake) })
		if ctx.Err() == nil {
			o.log.Warn("listening for news failed", "error", err)
		}
		o.pause(ctx, nil, o.interval)
	}
}

// pause waits for d, for the end of the context, or for news, which it reports.
func (o *observation) pause(ctx context.Context, wake <-chan struct{}, d time.Duration) (news bool) {
	passed := make(chan struct{})
	defer o.clock.AfterFunc(d, func() { close(passed) })()
	select {
	case <-wake:
		return true
	case <-passed:
	case <-ctx.Done():
	}
	return false
}

// compare brings known up to date and returns what changed, by role.
func (o *observation) compare(leaders []Leader) []LeaderChange {
	before := o.known
	o.known = make(map[string]Leader, len(leaders))
	var changes []LeaderChange
	for _, leader := range leaders {
		o.known[leader.Role] = leader
		previous, led := before[leader.Role]
		if led && previous.Term == leader.Term && previous.NodeID == leader.NodeID {
			continue
		}
		change := LeaderChange{Role: leader.Role, Leader: &leader}
		if led {
			change.Previous = &previous
		}
		changes = append(changes, change)
	}
	for _, role := range slices.Collect(maps.Keys(before)) {
		if _, led := o.known[role]; !led {
			previous := before[role]
			changes = append(changes, LeaderChange{Role: role, Previous: &previous})
		}
	}
	slices.SortFunc(changes, func(a, b LeaderChange) int { return strings.Compare(a.Role, b.Role) })
	return changes
}
