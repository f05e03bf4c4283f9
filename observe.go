package tenure

import (
	"context"
	"time"
)

// Change is a change of leadership.
type Change struct {
	Role     string
	Previous *Leader // nil if nobody led, or at the start of the observation
	Leader   *Leader // nil if nobody leads now
}

// Observe tells who leads the named roles, or all roles if none is named: first
// who leads now, then every change that can be seen. News arrives at once, and
// in case it is lost the database is asked every CheckInterval. A slow receiver
// misses intermediate leaders, never the last one. The channel is closed when
// the context ends or the node closes.
func (n *Node) Observe(ctx context.Context, roles ...Role) <-chan Change {
	names := make([]string, len(roles))
	for i, role := range roles {
		names[i] = role.Name()
	}
	wake := make(chan struct{}, 1)
	changes := make(chan Change)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closing {
		close(changes)
		return changes
	}
	n.observers[wake] = struct{}{}
	n.group.Add(1)
	go func() {
		defer n.group.Done()
		defer close(changes)
		n.observe(ctx, names, wake, changes)
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.observers, wake)
	}()
	return changes
}

// announce wakes the observers. Under the node's mutex.
func (n *Node) announce() {
	for wake := range n.observers {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

func (n *Node) observe(ctx context.Context, roles []string, wake <-chan struct{}, changes chan<- Change) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.life, cancel)()
	known := map[string]Leader{}
	for ctx.Err() == nil {
		leaders, err := n.leaders(ctx, roles)
		if err != nil && ctx.Err() == nil {
			n.log.Warn("observing failed", "error", err)
		}
		if err == nil {
			for _, change := range compare(known, leaders) {
				select {
				case changes <- change:
				case <-ctx.Done():
					return
				}
			}
		}
		poll := make(chan struct{})
		stop := n.clock.AfterFunc(n.cfg.CheckInterval, func() { close(poll) })
		select {
		case <-wake:
		case <-poll:
		case <-ctx.Done():
		}
		stop()
	}
}

func (n *Node) leaders(ctx context.Context, roles []string) ([]Leader, error) {
	ctx, cancel := context.WithTimeout(ctx, max(n.cfg.CheckInterval, time.Second))
	defer cancel()
	return n.backend.Leaders(ctx, roles...)
}

// compare brings known up to date and returns what changed.
func compare(known map[string]Leader, leaders []Leader) []Change {
	var changes []Change
	seen := map[string]bool{}
	for _, leader := range leaders {
		seen[leader.Role] = true
		before, led := known[leader.Role]
		known[leader.Role] = leader
		if led && before.Term == leader.Term && before.NodeID == leader.NodeID {
			continue
		}
		change := Change{Role: leader.Role, Leader: &leader}
		if led {
			change.Previous = &before
		}
		changes = append(changes, change)
	}
	for role, before := range known {
		if !seen[role] {
			delete(known, role)
			changes = append(changes, Change{Role: role, Previous: &before})
		}
	}
	return changes
}
