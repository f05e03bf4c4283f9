package httpguard

import (
	"context"
	"sync"
	"time"
)

// The limits on wrong credentials in a period, from one address and in total. A
// client over a limit must wait, and its next credentials are not checked. The
// limit on the total applies only to addresses without a successful login, so that
// guesses from many addresses do not lock out legitimate users.
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
	mu    sync.Mutex
	began time.Time // of the period
	from  map[string]int
	all   int
	known map[string]bool // addresses with a successful login
}

// NewAttempts returns a count without attempts.
func NewAttempts() *Attempts {
	return &Attempts{Now: time.Now, from: map[string]int{}, known: map[string]bool{}}
}

// Allowed reports whether an address may try again.
func (a *Attempts) Allowed(address string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.renewLocked()
	return a.from[address] < MaxAttempts && (a.all < MaxAllAttempts || a.known[address])
}

// Succeeded records a successful login from an address.
func (a *Attempts) Succeeded(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) < maxKnown {
		a.known[address] = true
	}
}

// Failed counts wrong credentials. There are never more addresses than attempts.
func (a *Attempts) Failed(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.renewLocked()
	a.from[address]++
	a.all++
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

// WithAttempts returns a context with which all handlers of a request share a count.
func WithAttempts(ctx context.Context, a *Attempts) context.Context {
	return context.WithValue(ctx, attemptsKey{}, a)
}

// AttemptsOf returns the count that the handlers of a request share, or otherwise
// if there is none.
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
