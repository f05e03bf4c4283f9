package tenure

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/retry"
)

// group has the elections of a node under a shared limit; see ElectionConfig.Group.
type group struct {
	name  string
	limit int

	// Guarded by Node.mu.
	elections []*Election
	failures  workFailures // of the terms of all elections
	damping   damping      // of all elections
}

// workFailures counts the terms whose work returned although the term was valid.
type workFailures struct {
	retry.Failure
	since time.Duration // when the first of these terms began, on the monotonic clock
}

// longTerm is how many check intervals a term must last for the earlier failures
// of work not to count. It is also the longest default delay.
const longTerm = 12

// add counts a term ended for work. A long term begins a new series.
func (f *workFailures) add(term *Term, early bool, err error) {
	n := term.election.node
	now := n.clock.Now().Mono
	if now-term.beganAt >= longTerm*n.cfg.CheckInterval {
		f.Attempt = 0
	}
	if !early {
		return
	}
	if f.Attempt++; f.Attempt == 1 {
		f.since = term.beganAt
	}
	f.Elapsed, f.LastError = now-f.since, err
}

// joinGroupLocked adds a new election to its group, if it has one.
func (n *Node) joinGroupLocked(e *Election) error {
	name, limit := e.cfg.Group, e.cfg.GroupLimit
	switch {
	case name == "" && limit == 0:
		return nil
	case name == "":
		return fmt.Errorf("%w: GroupLimit is %d, but Group is empty: name the group", ErrInvalidConfig, limit)
	case limit < 1:
		return fmt.Errorf("%w: the limit of the group %q is %d; it must be at least 1", ErrInvalidConfig, name, limit)
	}
	g := n.groups[name]
	if g == nil {
		g = &group{name: name, limit: limit}
		n.groups[name] = g
	}
	if g.limit != limit {
		return fmt.Errorf("%w: the limit of the group %q is %d; another election of the group has %d", ErrInvalidConfig, name, limit, g.limit)
	}
	g.elections, e.group = append(g.elections, e), g
	return nil
}

// leaveGroupLocked removes an election from its group. A group without elections has no
// limit.
func (n *Node) leaveGroupLocked(e *Election) {
	if e.group == nil {
		return
	}
	e.group.elections = slices.DeleteFunc(e.group.elections, func(other *Election) bool { return other == e })
	if len(e.group.elections) == 0 {
		delete(n.groups, e.group.name)
	}
}

// keepsRoomLocked reports whether the election uses room in its group until something
// ends: a term, its work and its lock, a reconnect grace, or the pause of the node after
// its work returned.
func (e *Election) keepsRoomLocked(now time.Duration) bool {
	state := e.State()
	return e.term != nil || state == Reconnecting || state != Stopped && e.attempt.notBefore > now
}

// usesRoomLocked reports whether the election uses room in its group, also for an
// attempt.
func (e *Election) usesRoomLocked(now time.Duration) bool {
	return e.attempt.mayHoldLock() || e.keepsRoomLocked(now)
}

// roomLocked returns how many more elections of the group may make an attempt, and
// when there may be more room although nothing else happens.
func (g *group) roomLocked(now time.Duration) (room int, more time.Duration) {
	room, more = g.limit, math.MaxInt64
	for _, e := range g.elections {
		if e.usesRoomLocked(now) {
			room--
		}
		if at := e.attempt.notBefore; at > now {
			more = min(more, at)
		}
	}
	return room, more
}

// admitLocked removes the elections of full groups from due. The longest waiting elections
// come first: so every role of a group is tried. more is when a group may have more room
// although nothing else happens.
func (n *Node) admitLocked(due []*Election, now time.Duration) (admitted []*Election, more time.Duration) {
	more = math.MaxInt64
	if len(n.groups) == 0 {
		return due, more
	}
	slices.SortFunc(due, func(a, b *Election) int {
		return cmp.Or(cmp.Compare(a.attempt.dueAt(), b.attempt.dueAt()), strings.Compare(a.role.Name(), b.role.Name()))
	})
	rooms := map[*group]int{}
	for _, e := range due {
		g := e.group
		if g == nil || e.usesRoomLocked(now) { // a pending attempt and a reconnecting election continue in their room
			admitted = append(admitted, e)
			continue
		}
		room, known := rooms[g]
		if !known {
			var at time.Duration
			room, at = g.roomLocked(now)
			more = min(more, at)
		}
		if room > 0 {
			admitted = append(admitted, e)
		}
		rooms[g] = room - 1
	}
	return admitted, more
}

// leaveRoomLocked makes the other elections of the group due, after a term of e.
func (e *Election) leaveRoomLocked() {
	if e.group == nil {
		return
	}
	now := e.node.clock.Now().Mono
	for _, other := range e.group.elections {
		if other != e && !other.attempt.pending {
			other.attempt.nextAt = min(other.attempt.nextAt, now)
		}
	}
}

// wakeGroupLocked wakes every waitFor of the group.
func (e *Election) wakeGroupLocked() {
	if e.group == nil {
		return
	}
	for _, other := range e.group.elections {
		other.wakeLocked()
	}
}

// withoutRoomLocked returns why an attempt would wait for other roles of the group, or
// nil. Running attempts of the group do not count, because they end soon.
func (e *Election) withoutRoomLocked() error {
	g, now := e.group, e.node.clock.Now().Mono
	if g == nil || e.usesRoomLocked(now) {
		return nil
	}
	room := g.limit
	for _, other := range g.elections {
		if other.keepsRoomLocked(now) {
			room--
		}
	}
	if room > 0 {
		return nil
	}
	return fmt.Errorf("%w for %s: it leads as many roles of the group %q as the limit permits, %d", ErrNotActive, e.role, g.name, g.limit)
}

// roleNames returns the names of the roles of the group.
func (n *Node) roleNames(g *group) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	names := make([]string, len(g.elections))
	for i, e := range g.elections {
		names[i] = e.role.Name()
	}
	return names
}

// ledBy counts each node's roles of the group.
func (n *Node) ledBy(ctx context.Context, g *group) (map[uuid.UUID]int, error) {
	leaders, err := n.backend.Leaders(ctx, n.roleNames(g)...)
	if err != nil {
		return nil, fmt.Errorf("look up the leaders of the group %q: %w", g.name, err)
	}
	led := map[uuid.UUID]int{}
	for _, leader := range leaders {
		led[leader.NodeID]++
	}
	return led, nil
}

// fullError is the error of a hand-over to a node without room in the group.
func (g *group) fullError(target uuid.UUID) error {
	return fmt.Errorf("%w: the node %s leads as many roles of the group %q as the limit permits, %d", ErrInvalidConfig, target, g.name, g.limit)
}

// validateRoom refuses a target without room in the group of the election: the role would
// have no leader until the reservation ends.
func (e *Election) validateRoom(ctx context.Context, target uuid.UUID) error {
	if e.group == nil {
		return nil
	}
	led, err := e.node.ledBy(ctx, e.group)
	if err == nil && led[target] >= e.group.limit {
		err = e.group.fullError(target)
	}
	return err
}

// validateRequest refuses a requested hand-over to a node without room in the group. If
// it cannot find out, it refuses nothing.
func (s *session) validateRequest(r Request) error {
	n := s.node
	n.mu.Lock()
	e := n.elections[r.Role]
	n.mu.Unlock()
	if r.Kind != RequestHandOver || e == nil || e.group == nil {
		return nil
	}
	led, err := s.ledBy(e.group, r.Target)
	if err == nil && led >= e.group.limit {
		err = e.group.fullError(r.Target)
	} else if err != nil && onlySessionLoss(err) == nil {
		n.log.Warn("checking the target of a hand-over failed", "role", r.Role, "target", r.Target, "error", err)
		err = nil
	}
	return err
}

// ledBy counts the roles of the group led by or reserved for a node, over the session if
// it has a registry. Otherwise it waits for at most a tenth of a RefreshInterval.
func (s *session) ledBy(g *group, node uuid.UUID) (led int, err error) {
	n := s.node
	if s.registry == nil {
		ctx, cancel := context.WithCancel(n.ctx)
		defer cancel()
		defer n.clock.AfterFunc(n.cfg.RefreshInterval/10, cancel)()
		all, err := n.ledBy(ctx, g)
		return all[node], err
	}
	holders, err := s.registry.Holders(n.roleNames(g))
	for _, holder := range holders {
		if holder.Node == node {
			led++
		}
	}
	return led, err
}

// dropFullTargets removes the targets of a drain without room in the group of the role. If
// the leaders cannot be read within a RefreshInterval, it removes the targets of every
// role in a group: then any candidate can acquire the role.
func (n *Node) dropFullTargets(ctx context.Context, targets map[*Election]uuid.UUID) {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	defer n.clock.AfterFunc(n.cfg.RefreshInterval, cancel)()
	led := map[*group]map[uuid.UUID]int{}
	for e, target := range targets {
		g := e.group
		if g == nil || target == uuid.Nil || target == n.id {
			continue
		}
		if led[g] == nil {
			var err error
			if led[g], err = n.ledBy(limited, g); err != nil {
				led[g] = map[uuid.UUID]int{}
				n.log.Warn("handing over to no node in particular", "group", g.name, "error", err)
				for other := range targets {
					if other.group == g {
						delete(targets, other)
					}
				}
				continue
			}
		}
		if led[g][target]++; led[g][target] > g.limit {
			delete(targets, e)
		}
	}
}
