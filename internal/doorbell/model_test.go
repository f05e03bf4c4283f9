package doorbell

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// server is a model of a server: the locks of the slots, transactions with their rows, and
// notifications.
type server struct {
	random *rand.Rand

	mu      sync.Mutex
	locked  []*reader              // by slot, the reader that holds the lock exclusively
	shared  []map[*transaction]int // by slot, how often each transaction shares it
	lastID  int
	open    map[int]bool // transactions with an id
	rows    []*row       // committed
	readers []*reader
	rings   int
}

// row is a committed row.
type row struct {
	id       int       // of its transaction
	readable time.Time // when no open transaction had a lower id, or zero
}

func newServer(seed uint64, readers int) *server {
	s := &server{random: rand.New(rand.NewPCG(seed, 0)), open: map[int]bool{}, locked: make([]*reader, readers)}
	for slot := range readers {
		s.shared = append(s.shared, map[*transaction]int{})
		s.readers = append(s.readers, &reader{server: s, slot: slot, rung: make(chan struct{}, 1), lost: make(chan struct{}, 1), woken: make(chan struct{}, 1), handled: map[*row]time.Time{}})
	}
	return s
}

// roll returns a number below n.
func (s *server) roll(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

// upTo returns a random duration.
func (s *server) upTo(d time.Duration) time.Duration { return time.Duration(s.roll(int(d) + 1)) }

// horizonLocked is the lowest id of an open transaction.
func (s *server) horizonLocked() int {
	lowest := s.lastID + 1
	for id := range s.open {
		lowest = min(lowest, id)
	}
	return lowest
}

// settleLocked records which rows have become readable.
func (s *server) settleLocked() {
	horizon := s.horizonLocked()
	for _, r := range s.rows {
		if r.readable.IsZero() && r.id < horizon {
			r.readable = time.Now()
		}
	}
}

// transaction is an open transaction, with a frame for itself and for each savepoint.
type transaction struct {
	server *server
	id     int
	frames []frame
}

type frame struct {
	rows   int
	shares []int // slots
	rings  bool
}

// insert adds a row and runs the trigger, as TriggerBody.
func (t *transaction) insert() {
	s := t.server
	s.mu.Lock()
	if t.id == 0 {
		s.lastID++
		t.id = s.lastID
		s.open[t.id] = true
	}
	last := &t.frames[len(t.frames)-1]
	last.rows++
	s.mu.Unlock()
	for slot := range s.shared {
		time.Sleep(s.upTo(10 * time.Microsecond))
		s.mu.Lock()
		free := s.locked[slot] == nil
		if free {
			s.shared[slot][t]++
			last.shares = append(last.shares, slot)
		} else {
			last.rings = true
		}
		s.mu.Unlock()
		if !free {
			return
		}
	}
}

// rollBackTo removes the frames above the first ones, and what they hold.
func (t *transaction) rollBackTo(frames int) {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	for _, f := range t.frames[frames:] {
		t.releaseLocked(f)
	}
	t.frames = t.frames[:frames]
}

func (t *transaction) releaseLocked(f frame) {
	for _, slot := range f.shares {
		if t.server.shared[slot][t]--; t.server.shared[slot][t] == 0 {
			delete(t.server.shared[slot], t)
		}
	}
}

func (t *transaction) rings() bool {
	for _, f := range t.frames {
		if f.rings {
			return true
		}
	}
	return false
}

// end commits or rolls back. Rows are visible before locks are released, and
// notifications come last.
func (t *transaction) end(commit bool) {
	s := t.server
	s.mu.Lock()
	delete(s.open, t.id)
	if commit {
		for _, f := range t.frames {
			for range f.rows {
				s.rows = append(s.rows, &row{id: t.id})
			}
		}
	}
	s.settleLocked()
	s.mu.Unlock()
	time.Sleep(s.upTo(100 * time.Microsecond))
	rings := commit && t.rings()
	t.rollBackTo(0)
	if !rings {
		return
	}
	s.mu.Lock()
	s.rings++
	s.mu.Unlock()
	time.Sleep(s.upTo(2 * time.Millisecond))
	for _, r := range s.readers {
		select {
		case r.rung <- struct{}{}:
		default:
		}
	}
}

// reader handles the rows that it can read. Its connection can be lost.
type reader struct {
	server  *server
	slot    int
	handler time.Duration // how long it takes at least
	bell    *Bell
	rung    chan struct{}
	lost    chan struct{}
	woken   chan struct{}

	looks   int
	handled map[*row]time.Time // guarded by the server's mutex, as is looks
}

var errLost = errors.New("the connection is lost")

func (r *reader) trip(ctx context.Context) error {
	time.Sleep(r.server.upTo(time.Millisecond))
	select {
	case <-r.lost:
		return errLost
	default:
		return ctx.Err()
	}
}

func (r *reader) Shut(ctx context.Context) (shut bool, err error) {
	r.server.mu.Lock()
	if shut = len(r.server.shared[r.slot]) == 0; shut {
		r.server.locked[r.slot] = r
	}
	r.server.mu.Unlock()
	return shut, r.trip(ctx)
}

func (r *reader) Open(ctx context.Context) (bool, error) {
	r.server.mu.Lock()
	r.server.locked[r.slot] = nil
	r.server.mu.Unlock()
	return true, r.trip(ctx)
}

func (r *reader) Wait(ctx context.Context, most time.Duration) (bool, error) {
	var passed <-chan time.Time
	if most > 0 {
		passed = time.After(most)
	}
	select {
	case <-r.rung:
		return true, nil
	case <-r.lost:
		return false, errLost
	case <-passed:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// attend attends the bell on one connection after another.
func (r *reader) attend(ctx context.Context) {
	for ctx.Err() == nil {
		_ = r.bell.Attend(ctx, r)
		r.server.mu.Lock()
		r.server.locked[r.slot] = nil
		r.server.mu.Unlock()
		select {
		case <-r.rung: // the notifications are lost too
		default:
		}
	}
}

// read looks when it is woken, and while rows are held by the horizon.
func (r *reader) read(ctx context.Context) {
	var held time.Time
	for ctx.Err() == nil {
		found, more := r.look()
		r.bell.Looked(found)
		switch {
		case found:
			held = time.Time{}
			time.Sleep(r.handler + r.server.upTo(5*time.Millisecond))
			continue
		case more && held.IsZero():
			held = time.Now()
		case !more:
			held = time.Time{}
		}
		var passed <-chan time.Time
		if more {
			passed = time.After(Pause(time.Since(held), 5*time.Millisecond))
		}
		select {
		case <-r.woken:
		case <-passed:
		case <-ctx.Done():
		}
	}
}

// look handles the rows that are readable now, and reports whether it found some, and
// whether there are others.
func (r *reader) look() (found, more bool) {
	s := r.server
	s.mu.Lock()
	r.looks++
	var seen []*row
	for _, row := range s.rows {
		switch {
		case !r.handled[row].IsZero():
		case row.readable.IsZero():
			more = true
		default:
			seen = append(seen, row)
		}
	}
	s.mu.Unlock()
	time.Sleep(s.upTo(time.Millisecond))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, row := range seen {
		r.handled[row] = time.Now()
	}
	return len(seen) > 0, more
}
