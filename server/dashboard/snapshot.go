package dashboard

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
)

// snapshot is the last known state of the installation. The watch writes it, and all
// requests read it.
type snapshot struct {
	mu      sync.RWMutex
	seen    bool // the database has been read once
	problem *problem
	readAt  time.Time
	offset  time.Duration // of the database's clock to this process's
	looks   uint64        // at terms

	roles     map[string]*role
	names     []string // of the roles, sorted, without retired ones
	members   []tenure.Member
	byNode    map[uuid.UUID]int   // index in members
	replaced  map[uuid.UUID]bool  // dead nodes that came back under their name
	events    []eventRecord       // oldest first
	number    uint64              // of the last event
	failovers []failoverRecord    // oldest first
	overall   overall             // of them
	nodeAt    map[nodeChange]bool // changes of nodes already among the events, as of the last read
	past      past
	found     *found
	work      workRecord
	alerts    []Alert
	blocked   []blockedRecord // as read last
	unread    struct{ work, alerts unread }
	changed   chan struct{} // closed at the next change
}

// problem is why the database cannot be read, and when it was read last.
type problem struct {
	err   error
	since time.Time
}

// role is the last term of a role, the one before it, and its last published state.
type role struct {
	term    history.Term
	before  history.Term // zero if it is not known
	state   string
	look    uint64 // the last read that contained its term
	retired bool
}

// isLed reports whether the role has a leader.
func (r *role) isLed() bool { return r.state == led || r.state == silent }

// overall is the summary of all failovers, shared by all requests until there are more.
type overall struct {
	mu     sync.Mutex
	number uint64 // of the last event
	at     time.Time
	record failoversRecord // without rows
}

func newSnapshot() *snapshot {
	return &snapshot{
		work: workRecord{Processors: []processorRecord{}, Schedules: []scheduleRecord{}, Retention: []retentionRecord{}}, alerts: []Alert{}, past: newPast(), found: newFound(nil), roles: map[string]*role{}, nodeAt: map[nodeChange]bool{}, changed: make(chan struct{})}
}

// onClock returns a time of this process by the database's clock.
func (p *snapshot) onClock(at time.Time) *time.Time {
	at = at.Add(p.offset).Round(0)
	return &at
}

// clock is the time by the database's clock.
func (p *snapshot) clock() time.Time { return time.Now().Add(p.offset).Round(0) }

func (p *snapshot) clockNow() time.Time {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.clock()
}

// firstReadWait is how long a request for a role waits for the first read of the
// database: before it, no role is known.
const firstReadWait = 2 * time.Second

// awaitFirstRead waits for the first read of the database and reports whether it has
// happened.
func (p *snapshot) awaitFirstRead(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, firstReadWait)
	defer cancel()
	for {
		p.mu.RLock()
		seen, failed, changed := p.seen, p.problem != nil, p.changed
		p.mu.RUnlock()
		if seen || failed || ctx.Err() != nil {
			return seen
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// record numbers events and keeps them.
func (p *snapshot) record(events []eventRecord) {
	for i := range events {
		p.number++
		events[i].Number = p.number
	}
	p.events = append(p.events, events...)
	if len(p.events) > maxEvents*5/4 {
		p.events = slices.Clone(p.events[len(p.events)-maxEvents:])
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

// note records an event of this process, at the current time.
func (p *snapshot) note(event eventRecord) eventRecord {
	p.mu.Lock()
	defer p.mu.Unlock()
	event.At = p.clock()
	events := []eventRecord{event}
	p.record(events)
	return events[0]
}

// failed records a failure to read the database.
func (p *snapshot) failed(err error) (first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.problem != nil {
		first = errors.Is(p.problem.err, errRested)
		p.problem.err = err
		return first
	}
	p.problem = &problem{err, time.Now()}
	if p.seen {
		p.problem.since = p.readAt // what is shown is as of then
	}
	return true
}

// errRested is the problem until the first read after a time without viewers.
var errRested = errors.New("the database was not read while there was no viewer")

// resume notes the begin of a read after a time without viewers. The shown state is
// older: it is not shown as the present one if the read does not succeed.
func (p *snapshot) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen {
		p.problem = &problem{errRested, time.Now()}
	}
}
