package httpguard

import (
	"context"
	"sync"
	"time"
)

// The limits on wrong credentials in a period, from one address and in total. A client
// over a limit must wait, and its next credentials are not checked. The limit on the total
// applies only to addresses without a successful login: guesses from many addresses do not
// lock out legitimate users.
const (
	AttemptsPeriod = time.Minute
	MaxAttempts    = 10
	MaxAllAttempts = 200
	maxKnown       = 1000 // addresses with a successful login
)

// Attempts counts wrong credentials by address. It is safe for concurrent use.
type Attempts struct {
	Now func() time.Time // for tests

	// Guarded by mu.
	mu       sync.Mutex
	began    time.Time // of the period
	from     map[string]int
	all      int
	known    map[string]bool // addresses with a successful login
	checking map[string]int  // checks under way, by address
	allNow   int             // checks under way
	ended    chan struct{}   // closed when a check ends
}

// NewAttempts returns a count without attempts.
func NewAttempts() *Attempts {
	return &Attempts{
		Now: time.Now, from: map[string]int{}, known: map[string]bool{}, checking: map[string]int{}, ended: make(chan struct{}),
	}
}

// Allowed reports whether an address may try again. It reserves nothing: only Check
// looks at credentials.
func (a *Attempts) Allowed(address string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.allowedLocked(address)
}

func (a *Attempts) allowedLocked(address string) bool {
	a.renewLocked()
	return a.from[address] < MaxAttempts && (a.all < MaxAllAttempts || a.known[address])
}

// Check calls check to check credentials from an address, and counts its result. If check
// returns an error, nothing is counted. Without allowed, check was not called: the address
// must wait for the next period, or ctx has ended.
//
// Each check under way counts as a wrong guess until it returns. So parallel guesses are
// no more than guesses in turn, and a valid client waits if too many checks are under way.
func (a *Attempts) Check(ctx context.Context, address string, check func() (valid bool, err error)) (valid, allowed bool, err error) {
	if !a.reserve(ctx, address) {
		return false, false, nil
	}
	failed := true // also if check panics
	defer func() { a.finish(address, valid, failed) }()
	valid, err = check()
	failed = err == nil && !valid
	return valid, true, err
}

// reserve counts a check as under way when the limits permit its failure. It reports false
// if the address may not try again, or if ctx ends first.
func (a *Attempts) reserve(ctx context.Context, address string) bool {
	for {
		reserved, allowed, ended := a.tryReserve(address)
		if reserved || !allowed {
			return reserved
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return false
		}
	}
}

func (a *Attempts) tryReserve(address string) (reserved, allowed bool, ended <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	allowed = a.allowedLocked(address)
	reserved = a.from[address]+a.checking[address] < MaxAttempts && (a.all+a.allNow < MaxAllAttempts || a.known[address])
	if reserved {
		a.checking[address]++
		a.allNow++
	}
	return reserved, allowed, a.ended
}

// finish ends a check. There are never more addresses than attempts.
func (a *Attempts) finish(address string, valid, failed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.renewLocked()
	a.allNow--
	if a.checking[address]--; a.checking[address] == 0 {
		delete(a.checking, address)
	}
	if failed {
		a.from[address]++
		a.all++
	}
	if valid && len(a.known) < maxKnown {
		a.known[address] = true
	}
	close(a.ended)
	a.ended = make(chan struct{})
}

// renewLocked begins a new period when the last one is over.
func (a *Attempts) renewLocked() {
	if now := a.Now(); now.Sub(a.began) >= AttemptsPeriod {
		a.began, a.from, a.all = now, map[string]int{}, 0
	}
}

// Reset forgets all wrong credentials.
func (a *Attempts) Reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.began = time.Time{}
}

type attemptsKey struct{}

// WithAttempts returns a context with a shared count for all handlers of a request.
func WithAttempts(ctx context.Context, a *Attempts) context.Context {
	return context.WithValue(ctx, attemptsKey{}, a)
}

// AttemptsOf returns the shared count of the handlers of a request, or otherwise if there
// is none.
func AttemptsOf(ctx context.Context, otherwise *Attempts) *Attempts {
	if a, ok := ctx.Value(attemptsKey{}).(*Attempts); ok {
		return a
	}
	return otherwise
}

// Clean reports whether no wrong credentials count at the moment.
func (a *Attempts) Clean() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all == 0
}
