package tenuretest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// Database is a [tenure.Backend] in memory, for any number of nodes. It keeps the contract
// of a real one: at most one session holds a role, term numbers only increase, and after a
// silence of one lease a session loses its roles. A method of a test takes effect before
// it returns; the nodes react in their own goroutines. It is safe for concurrent use.
type Database struct {
	clock   clocks.Clock
	stepped *Clock // the same clock, if it is advanced by hand

	mu          sync.Mutex
	opened      int64                  // sessions so far
	connections map[*session]struct{}  // whose clients have not noticed an end
	nodes       map[uuid.UUID]*session // of live nodes
	records     map[uuid.UUID]*record  // the registry, dead nodes included
	locks       map[tenure.LockKey]*session
	roles       map[string]*role
	stranger    *session // holds the occupied roles
	failure     error
	listeners   map[chan struct{}]struct{}
}

var (
	_ tenure.Backend  = (*Database)(nil)
	_ tenure.Listener = (*Database)(nil)
)

// NewDatabase returns an empty database on the machine's time or, made in a synctest
// bubble, on the bubble's.
func NewDatabase() *Database { return newDatabase(clocks.System(), nil) }

// NewDatabaseWithClock returns an empty database on the clock's time. Its nodes must be
// opened with the same clock in [tenure.Config]; others are refused.
func NewDatabaseWithClock(clock *Clock) *Database {
	d := newDatabase(clock, clock)
	clock.follow(d)
	return d
}

func newDatabase(clock clocks.Clock, stepped *Clock) *Database {
	d := &Database{
		clock: clock, stepped: stepped,
		connections: map[*session]struct{}{}, nodes: map[uuid.UUID]*session{},
		records: map[uuid.UUID]*record{},
		locks:   map[tenure.LockKey]*session{}, roles: map[string]*role{},
		listeners: map[chan struct{}]struct{}{},
	}
	d.stranger = newSession(d, tenure.SessionOptions{
		Node:   tenure.NodeInfo{ID: uuid.New(), Name: "stranger", Host: "elsewhere"},
		Timing: tenure.Timing{Lease: 10 * time.Second},
	})
	return d
}

// Open implements [tenure.Backend].
func (d *Database) Open(ctx context.Context, opening tenure.SessionOptions) (tenure.Session, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("open: %w: %w", tenure.ErrConnection, context.Cause(ctx))
	}
	if clock, _ := opening.Clock.(*Clock); clock != d.stepped {
		return nil, fmt.Errorf("open: %w: the node and the database must have the same clock: "+
			"give the one that was passed to NewDatabaseWithClock, or none, to tenure.Config", tenure.ErrRefused)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failure != nil {
		return nil, fmt.Errorf("open: %w", d.failure)
	}
	s := newSession(d, opening)
	if err := d.registerLocked(s); err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	d.notifyLocked()
	d.connections[s] = struct{}{}
	s.renewLocked()
	s.watchLeaseLocked()
	return s, nil
}

// Leaders implements [tenure.Backend].
func (d *Database) Leaders(ctx context.Context, roles ...string) ([]tenure.Leader, error) {
	var leaders []tenure.Leader
	err := d.ask(ctx, "leaders", func() error {
		d.stranger.renewLocked()
		now := d.clock.Now()
		for _, name := range slices.Sorted(maps.Keys(d.roles)) {
			r := d.roles[name]
			if r.leader == nil || len(roles) > 0 && !slices.Contains(roles, name) {
				continue
			}
			leader := r.last
			leader.ReadAt, leader.ValidFor = time.Now(), r.leader.leaseUntil-now.Mono
			leader.LeaseUntil = now.Wall.Add(leader.ValidFor)
			if record := d.records[leader.NodeID]; record != nil {
				published := record.member.Description
				leader.Address, leader.HTTPPort, leader.GRPCPort, leader.Labels = published.Address, published.HTTPPort, published.GRPCPort, published.Labels
			}
			leaders = append(leaders, leader)
		}
		return nil
	})
	return leaders, err
}

// Request implements [tenure.Backend]. As leader of a role, a stranger ignores requests.
func (d *Database) Request(ctx context.Context, request tenure.Request) error {
	// The node's mutex is taken without the database's.
	if campaigns := d.campaigns(request.Target); request.Role != "" && campaigns != nil && !campaigns(request.Role) {
		return d.ask(ctx, "request", func() error {
			if err := d.checkRequestLocked(request); err != nil {
				return err
			}
			return fmt.Errorf("%w: %s does not campaign for %q", tenure.ErrNotActive, request.Target, request.Role)
		})
	}
	return d.ask(ctx, "request", func() error {
		if request.Kind == tenure.RequestDrain || request.Kind == tenure.RequestUndrain {
			return d.requestNodeLocked(request)
		}
		if err := d.checkRequestLocked(request); err != nil {
			return err
		}
		r := d.roles[request.Role]
		if request.Offer {
			return nil
		}
		request.At, request.Term = d.clock.Now().Wall, 0 // it is that of the leader
		r.requests = append(r.requests, request)
		r.leader.wakeLocked()
		return nil
	})
}

// campaigns returns the function of a live node that reports whether it campaigns for a
// role.
func (d *Database) campaigns(node uuid.UUID) func(role string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.nodes[node]; s != nil {
		return s.opening.Campaigns
	}
	return nil
}

// checkRequestLocked checks a request for the leader of a role.
func (d *Database) checkRequestLocked(request tenure.Request) error {
	r := d.roles[request.Role]
	switch {
	case r == nil || r.leader == nil, request.Term != 0 && request.Term != r.last.Term:
		return fmt.Errorf("%w: %s", tenure.ErrNoLeader, request.Role)
	case request.Target != uuid.Nil && d.nodes[request.Target] == nil:
		return fmt.Errorf("%w: %s", tenure.ErrUnknownNode, request.Target)
	case request.Target != uuid.Nil && !d.isActiveLocked(request.Target):
		return fmt.Errorf("%w: %s", tenure.ErrNotActive, request.Target)
	}
	return nil
}

// ask runs a query without a session.
func (d *Database) ask(ctx context.Context, doing string, call func() error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w: %w", doing, tenure.ErrConnection, context.Cause(ctx))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failure != nil {
		return fmt.Errorf("%s: %w", doing, d.failure)
	}
	return call()
}

// Listen implements [tenure.Listener].
func (d *Database) Listen(ctx context.Context, wake func()) error {
	wakeups := make(chan struct{}, 1)
	d.mu.Lock()
	d.listeners[wakeups] = struct{}{}
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.listeners, wakeups)
	}()
	for ctx.Err() == nil {
		if err := d.ask(ctx, "listen", func() error { return nil }); err != nil {
			return err
		}
		wake()
		select {
		case <-wakeups:
		case <-ctx.Done():
		}
	}
	return nil
}

// notifyLocked wakes all sessions and listeners.
func (d *Database) notifyLocked() {
	for s := range d.connections {
		s.wakeLocked()
	}
	d.notifyListenersLocked()
}

func (d *Database) notifyListenersLocked() {
	for wakeups := range d.listeners {
		wakeup.Send(wakeups)
	}
}

// settled reports whether every session waits for time to pass, or for a notification.
func (d *Database) settled() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for s := range d.connections {
		if !s.settledLocked() {
			return false
		}
	}
	return true
}

// recheck makes a clock advanced by hand check again whether all sessions wait.
func (d *Database) recheck() {
	if d.stepped != nil {
		d.stepped.recheck()
	}
}
