package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// database is a backend in memory whose sessions do what a test sets.
type database struct {
	mu       sync.Mutex
	refuse   error // what Open returns
	opened   int
	holders  map[string]*conn
	terms    map[string]int64
	leaders  map[string]tenure.Leader
	requests []tenure.Request
	reserved map[string]reservation
	sessions []*conn     // newest last
	prepare  func(*conn) // called for each new session
	silent   bool        // notifications are lost

	reportRequests bool // by heartbeats
}

// reservation keeps a role for one node.
type reservation struct {
	node  uuid.UUID
	until time.Time
}

// longestTest is how much simulated time a test may take. Nodes send heartbeats
// for ever, so a bubble in which something never happens has no end.
const longestTest = 24 * time.Hour

func newDatabase() *database {
	time.AfterFunc(longestTest, func() { panic("the test hangs: a day of simulated time has passed") })
	return &database{
		holders: map[string]*conn{}, terms: map[string]int64{}, leaders: map[string]tenure.Leader{}, reserved: map[string]reservation{},
	}
}

// conn is one session. The hooks are called without the database's mutex and
// may block.
type conn struct {
	db       *database
	options  tenure.SessionOptions
	number   int64
	notified chan struct{}
	dead     chan struct{} // closed when the connection is gone
	once     sync.Once

	mu          sync.Mutex
	calls       []string
	onHeartbeat func() error
	onRelease   func() error
	onRequests  func() error
	onTaken     func() error                            // after requests were taken: they are returned with its error
	idle        func() bool                             // while it waits: whether nothing has ended the wait
	onAcquire   func(tenure.Role) *tenure.AcquireResult // nil: the usual result
	failAcquire error                                   // what a whole call of TryAcquire returns after its hooks
	load        tenure.Load                             // of the last heartbeat
	aborted     bool
}

func (d *database) Open(ctx context.Context, options tenure.SessionOptions) (tenure.Session, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opened++
	if d.refuse != nil {
		return nil, d.refuse
	}
	c := &conn{db: d, options: options, number: int64(len(d.sessions) + 1), notified: make(chan struct{}, 1), dead: make(chan struct{})}
	if d.prepare != nil {
		d.prepare(c)
	}
	d.sessions = append(d.sessions, c)
	return c, ctx.Err()
}

func (d *database) Leaders(_ context.Context, roles ...string) ([]tenure.Leader, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var leaders []tenure.Leader
	for role, leader := range d.leaders {
		if d.holders[role] != nil && (len(roles) == 0 || slices.Contains(roles, role)) {
			leader.ReadAt, leader.ValidFor = time.Now(), time.Second
			leaders = append(leaders, leader)
		}
	}
	return leaders, nil
}

func (d *database) Request(_ context.Context, request tenure.Request) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if request.Offer {
		for _, c := range slices.Backward(d.sessions) {
			if c.options.Node.ID == request.Target && c.options.Campaigns(request.Role) {
				return nil
			}
		}
		return tenure.ErrNotActive
	}
	d.requests = append(d.requests, request)
	d.notifyLocked()
	return nil
}

// notifyLocked wakes every session.
func (d *database) notifyLocked() {
	if d.silent {
		return
	}
	for _, c := range d.sessions {
		select {
		case c.notified <- struct{}{}:
		default:
		}
	}
}

// wake sends a notification to every session.
func (d *database) wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notifyLocked()
}

// last is the newest session.
func (d *database) last() *conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sessions[len(d.sessions)-1]
}

func (d *database) holder(role string) *conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.holders[role]
}

// seize makes a stranger hold the role.
func (d *database) seize(role string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.holders[role] = &conn{db: d}
	d.terms[role]++
}

func (d *database) free(role string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.holders, role)
	d.notifyLocked()
}

// kill ends the session as the server would: the client sees the connection
// end, then the locks are free.
func (c *conn) kill() {
	c.once.Do(func() { close(c.dead) })
	c.db.mu.Lock()
	defer c.db.mu.Unlock()
	for role, holder := range c.db.holders {
		if holder == c {
			delete(c.db.holders, role)
		}
	}
	c.db.notifyLocked()
}

func (c *conn) say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, fmt.Sprintf(format, args...))
}

func (c *conn) count(call string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, said := range c.calls {
		if said == call {
			n++
		}
	}
	return n
}

func (c *conn) wasAborted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.aborted
}

// set changes the hooks.
func (c *conn) set(change func(*conn)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

var errGone = fmt.Errorf("%w: %w", tenure.ErrSessionLost, tenure.ErrConnection)

// sendable is the rule that a session sends nothing once trust has ended.
func (c *conn) sendable() error {
	select {
	case <-c.dead:
		return errGone
	default:
	}
	if !c.options.MaySend() {
		return tenure.ErrSessionLost
	}
	return nil
}

func (c *conn) Incarnation() int64 { return c.number }

func (c *conn) TryAcquire(candidates []tenure.AcquireRequest) ([]tenure.AcquireResult, error) {
	c.say("try")
	attempts := make([]tenure.AcquireResult, len(candidates))
	for i, candidate := range candidates {
		if err := c.sendable(); err != nil {
			return nil, err
		}
		c.mu.Lock()
		hook := c.onAcquire
		c.mu.Unlock()
		if hook != nil {
			if attempt := hook(candidate.Role); attempt != nil {
				attempts[i] = *attempt
				continue
			}
		}
		attempts[i] = c.take(candidate)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failAcquire != nil {
		return nil, c.failAcquire
	}
	return attempts, nil
}

func (c *conn) take(candidate tenure.AcquireRequest) tenure.AcquireResult {
	d, role := c.db, candidate.Role.Name()
	d.mu.Lock()
	defer d.mu.Unlock()
	if holder := d.holders[role]; holder == c {
		panic("a lock was stacked")
	} else if holder != nil {
		return tenure.AcquireResult{Outcome: tenure.OutcomeHeld, Holder: holder.options.Node.ID}
	}
	if r := d.reserved[role]; r.node != c.options.Node.ID && time.Until(r.until) > 0 {
		return tenure.AcquireResult{Outcome: tenure.OutcomeHeld, RetryIn: time.Until(r.until)}
	}
	if _, reserved := d.reserved[role]; !reserved && candidate.YieldFor > 0 && candidate.YieldTerm == d.terms[role] {
		return tenure.AcquireResult{Outcome: tenure.OutcomeHeld, RetryIn: candidate.YieldFor}
	}
	delete(d.reserved, role)
	d.holders[role] = c
	previous := d.terms[role]
	d.terms[role] = max(previous+1, time.Now().UnixMilli())
	d.leaders[role] = tenure.Leader{
		Role: role, Term: d.terms[role], NodeID: c.options.Node.ID, NodeName: c.options.Node.Name, AcquiredAt: time.Now(),
	}
	return tenure.AcquireResult{Outcome: tenure.OutcomeGranted, Term: d.terms[role], Previous: previous, AcquiredAt: time.Now(), PrecedingVacancy: 3 * time.Second}
}

func (c *conn) Heartbeat(load tenure.Load) (requestsPending bool, err error) {
	if err := c.sendable(); err != nil {
		return false, err
	}
	c.say("heartbeat")
	c.mu.Lock()
	c.load = load
	hook := c.onHeartbeat
	c.mu.Unlock()
	if hook != nil {
		return false, hook()
	}
	c.db.mu.Lock()
	defer c.db.mu.Unlock()
	return c.db.reportRequests && len(c.db.requests) > 0, nil
}

func (c *conn) Release(releases []tenure.ReleaseRequest) error {
	if err := c.sendable(); err != nil {
		return err
	}
	c.mu.Lock()
	hook := c.onRelease
	c.mu.Unlock()
	if hook != nil {
		if err := hook(); err != nil {
			return err
		}
	}
	d := c.db
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range releases {
		if r.By == "" {
			c.say("release %s %s", r.Role, r.Reason)
		} else {
			c.say("release %s %s by %s", r.Role, r.Reason, r.By)
		}
		if d.holders[r.Role.Name()] != c {
			return errors.New("released what was not held")
		}
		delete(d.holders, r.Role.Name())
		if r.Target != uuid.Nil {
			d.reserved[r.Role.Name()] = reservation{r.Target, time.Now().Add(r.Reservation)}
		}
	}
	d.notifyLocked()
	return nil
}

func (c *conn) Requests() ([]tenure.Request, error) {
	c.mu.Lock()
	hook := c.onRequests
	c.mu.Unlock()
	if hook != nil {
		if err := hook(); err != nil {
			return nil, err
		}
	}
	c.db.mu.Lock()
	mine := c.db.requests
	c.db.requests = nil
	c.db.mu.Unlock()
	c.mu.Lock()
	hook = c.onTaken
	c.mu.Unlock()
	if hook != nil && len(mine) > 0 {
		return mine, hook()
	}
	return mine, nil
}

func (c *conn) Wait(ctx context.Context) (bool, error) {
	c.mu.Lock()
	c.idle = func() bool { return ctx.Err() == nil && len(c.notified) == 0 }
	c.mu.Unlock()
	defer c.set(func(c *conn) { c.idle = nil })
	select {
	case <-c.dead:
		return false, errGone
	case <-c.notified:
	case <-ctx.Done():
		return false, nil
	}
	select {
	case <-c.dead: // its end notifies all
		return false, errGone
	default:
		return true, nil
	}
}

func (c *conn) Close() error {
	c.say("close")
	c.kill()
	return nil
}

func (c *conn) Abort() {
	c.set(func(c *conn) { c.aborted = true })
	c.kill()
}

var (
	_ tenure.Backend = (*database)(nil)
	_ tenure.Session = (*conn)(nil)
)
