package dashboard

import (
	"sync"
	"time"
)

// The bounds on guessing: wrong credentials in a period, from one address and
// from all together. Whoever has used theirs up waits, and is not told whether
// the next ones would have been right. The bound on all holds for addresses from
// which nobody has logged in: who guesses from many must not lock the others out.
const (
	attemptsPeriod = time.Minute
	maxAttempts    = 10
	maxAllAttempts = 200
	maxKnown       = 1000 // addresses from which somebody has logged in
)

// attempts counts wrong credentials. It is safe for concurrent use.
type attempts struct {
	now func() time.Time

	mu    sync.Mutex
	began time.Time // of the period
	from  map[string]int
	all   int
	known map[string]bool // addresses from which somebody has logged in
}

func newAttempts() *attempts {
	return &attempts{now: time.Now, from: map[string]int{}, known: map[string]bool{}}
}

// allowed reports whether an address may try again.
func (a *attempts) allowed(address string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.renew()
	return a.from[address] < maxAttempts && (a.all < maxAllAttempts || a.known[address])
}

// succeeded notes that somebody has logged in from an address.
func (a *attempts) succeeded(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) < maxKnown {
		a.known[address] = true
	}
}

// failed counts wrong credentials. There are never more addresses than attempts.
func (a *attempts) failed(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.renew()
	a.from[address]++
	a.all++
}

// renew begins a new period when the last one is over.
func (a *attempts) renew() {
	if now := a.now(); now.Sub(a.began) >= attemptsPeriod {
		a.began, a.from, a.all = now, map[string]int{}, 0
	}
}
