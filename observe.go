package tenure

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// LeaderChange is a change of the leader of a role, or of its published address, ports or
// labels. In the second case Previous and Leader have the same term.
type LeaderChange struct {
	Role     string
	Previous *Leader // nil if there was no leader, or at the start of the observation
	Leader   *Leader // nil if there is no leader now
}

// Observe sends the current leaders of the named roles, or of all roles if none
// is named, and then every [LeaderChange]. It reads the leaders after a
// notification, several times in the seconds after it, and every CheckInterval
// in case a notification was lost. A slow receiver misses intermediate leaders
// but never the latest one. The channel is closed when ctx ends or the node
// closes.
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
	go func() { // exits when ctx ends or the node closes; Close waits through n.group
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

// Subscribe returns a channel that receives a value when an election or a node
// may have changed, and when the node's session begins or ends. Changes are
// merged until the value is received. stop ends the subscription; the channel
// is never closed.
func (n *Node) Subscribe() (changed <-chan struct{}, stop func()) {
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

// notifySubscribersLocked wakes all observations and subscriptions.
func (n *Node) notifySubscribersLocked() {
	for wake := range n.subscribers {
		wakeup.Send(wake)
	}
}

// Observe is [Node.Observe] for programs without a node. Of cfg it uses CheckInterval,
// Logger and Clock. When ctx ends, it stops its goroutines and then closes the channel.
func Observe(ctx context.Context, backend Backend, cfg Config, roles ...Role) <-chan LeaderChange {
	o := newObservation(backend, cfg.withDefaults(), roles)
	changes, wake := make(chan LeaderChange), make(chan struct{}, 1)
	go func() { // exits when ctx ends; the closed channel shows it
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
	clock    clocks.Clock
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

// recheckDelays are the delays of the reads after a notification: a vacancy
// causes a notification, the next term does not.
var recheckDelays = [...]time.Duration{
	10 * time.Millisecond, 40 * time.Millisecond, 200 * time.Millisecond, time.Second, 3 * time.Second,
}

// run reads the leaders until ctx ends.
func (o *observation) run(ctx context.Context, wake <-chan struct{}, changes chan<- LeaderChange) {
	for recheck := len(recheckDelays); ; {
		if !o.poll(ctx, changes) {
			return
		}
		pause := o.interval
		if recheck < len(recheckDelays) {
			pause = min(pause, recheckDelays[recheck])
			recheck++
		}
		if wakeup.AwaitOn(ctx, o.clock, pause, wake) {
			recheck = 0
		}
	}
}

// poll reads the leaders and sends the changes. It reports whether ctx has not
// ended.
func (o *observation) poll(ctx context.Context, changes chan<- LeaderChange) bool {
	limited, cancel := context.WithTimeout(ctx, max(o.interval, time.Second))
	leaders, err := o.backend.Leaders(limited, o.roles...)
	cancel()
	if err != nil {
		if ctx.Err() == nil {
			o.log.Warn("reading the leaders failed", "error", err)
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

// listen receives the backend's notifications. While the listener fails, run polls every
// interval.
func (o *observation) listen(ctx context.Context, listener Listener, wake chan<- struct{}) {
	wakeup.Listen(ctx, o.clock, o.interval, listener.Listen, func() { wakeup.Send(wake) }, func(err error) {
		o.log.Warn("listening for notifications failed", "error", err)
	})
}

// compare updates known and returns the changes, ordered by role.
func (o *observation) compare(leaders []Leader) []LeaderChange {
	before := o.known
	o.known = make(map[string]Leader, len(leaders))
	var changes []LeaderChange
	for _, leader := range leaders {
		o.known[leader.Role] = leader
		previous, led := before[leader.Role]
		if led && previous.sameAs(leader) {
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
