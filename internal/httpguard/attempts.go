package httpguard

import (
	"context"
	"sync"
	"time"
)

// The bounds on guessing: wrong credentials in a period, from one address and
// from all together. Whoever has used theirs up waits, and is not told whether
// the next ones would have been right. The bound on all holds for addresses from
// which nobody has logged in: who guesses from many must not lock the others out.
const (
	AttemptsPeriod = time.Minute
	MaxAttempts    = 10
	MaxAllAttempts = 200
	maxKnown       = 1000 // addresses from which somebody has logged in
)

// Attempts counts wrong credentials. It is safe for concurrent use.
type Attempts struct {
	Now func() time.Time // for tests

	mu    sync.Mutex
	began time.Time // of the period
	from  map[string]int
	all   int
	known map[string]bool // addresses from which somebody has logged in
}

// NewAttempts returns a count of nothing.
func NewAttempts() *Attempts {
	return &Attempts{Now: time.Now, from: map[string]int{}, known: map[string]bool{}}
}

// Allowed reports whether an address may try again.
func (a *Attempts) Allowed(address string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.renew()
	return a.from[address] < MaxAttempts && (a.all < MaxAllAttempts || a.known[address])
}

// Succeeded notes that somebody has logged in from an address.
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
	a.renew()
	a.from[address]++
	a.all++
}

// renew begins a new period when the last one is over.
func (a *Attempts) renew() {
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

// WithAttempts has the handlers of a request count together.
func WithAttempts(ctx context.Context, a *Attempts) context.Context {
	return context.WithValue(ctx, attemptsKey{}, a)
}

// AttemptsOf returns what the handlers of a request count by, or another one
// where nothing was said.
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
