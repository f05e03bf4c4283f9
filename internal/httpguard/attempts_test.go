package httpguard

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// guess brings credentials from an address and fails the test if they are not checked.
func guess(t *testing.T, a *Attempts, address string, valid bool) {
	t.Helper()
	got, allowed, err := a.Check(t.Context(), address, func() (bool, error) { return valid, nil })
	if got != valid || !allowed || err != nil {
		t.Fatalf("a guess from %s, valid %v: got %v, allowed %v, %v", address, valid, got, allowed, err)
	}
}

// TestGuessesFromManyAddressesLockOutNoKnownOne: guesses from many addresses do not lock out users who have
// logged in before.
func TestGuessesFromManyAddressesLockOutNoKnownOne(t *testing.T) {
	t.Parallel()
	now := time.Now()
	a := NewAttempts()
	a.Now = func() time.Time { return now }
	guess(t, a, "192.0.2.1", true)
	for i := range 200 {
		guess(t, a, netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}).String(), false)
	}
	if a.Allowed("198.51.100.250") {
		t.Error("another address may guess")
	}
	if !a.Allowed("192.0.2.1") {
		t.Error("who has logged in before is locked out")
	}
	for range 10 {
		guess(t, a, "192.0.2.1", false)
	}
	if a.Allowed("192.0.2.1") {
		t.Error("who has logged in before may guess without end")
	}
	now = now.Add(time.Minute - 1)
	if a.Allowed("192.0.2.1") {
		t.Error("an address may guess again before a minute has passed")
	}
	now = now.Add(1)
	if !a.Allowed("192.0.2.1") {
		t.Error("an address may not guess after a minute")
	}
	for i := range 2 * maxKnown {
		guess(t, a, netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)}).String(), true)
	}
	if len(a.known) > maxKnown {
		t.Errorf("%d addresses are kept", len(a.known))
	}
}

// TestParallelGuessesAreLimited: guesses that are sent at the same instant are checked no
// more often than guesses in turn, from one address and from many.
func TestParallelGuessesAreLimited(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		addresses, most int
	}{
		"one address":    {1, 10},
		"many addresses": {250, 200},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := NewAttempts()
			var guesses, refusals atomic.Int64
			var group sync.WaitGroup
			for i := range 1000 {
				group.Go(func() {
					address := netip.AddrFrom4([4]byte{198, 51, 100, byte(i % c.addresses)}).String()
					_, allowed, _ := a.Check(t.Context(), address, func() (bool, error) {
						guesses.Add(1)
						time.Sleep(time.Second) // of the test's own clock: all checks are under way together
						return false, nil
					})
					if !allowed {
						refusals.Add(1)
					}
				})
			}
			group.Wait()
			if guesses.Load() != int64(c.most) || refusals.Load() != 1000-int64(c.most) {
				t.Errorf("%s: of 1000 parallel guesses, %d were checked and %d refused; want %d checked", name, guesses.Load(), refusals.Load(), c.most)
			}
		})
	}
}

// TestValidClientsWaitForTheirTurn: valid credentials are never refused because many checks
// are under way, and a caller that goes away waits no longer.
func TestValidClientsWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := NewAttempts()
		slow := func() (bool, error) {
			time.Sleep(time.Second) // of the test's own clock
			return true, nil
		}
		var group sync.WaitGroup
		for range 5 * MaxAttempts {
			group.Go(func() {
				if valid, allowed, err := a.Check(t.Context(), "192.0.2.1", slow); !valid || !allowed || err != nil {
					t.Errorf("valid credentials: got %v, allowed %v, %v", valid, allowed, err)
				}
			})
		}
		synctest.Wait() // all slots are taken
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, allowed, _ := a.Check(ctx, "192.0.2.1", slow); allowed {
			t.Error("a check began after its caller had gone")
		}
		group.Wait()
		if !a.Clean() || len(a.checking) > 0 || a.allNow != 0 {
			t.Errorf("after valid credentials only: clean %v, %d addresses and %d checks under way", a.Clean(), len(a.checking), a.allNow)
		}
	})
}

// TestFailedChecksCountForNothingAndPanicsAsGuesses: a check that fails counts for nothing, one
// that panics counts as wrong.
func TestFailedChecksCountForNothingAndPanicsAsGuesses(t *testing.T) {
	t.Parallel()
	a := NewAttempts()
	unreadable := errors.New("unreadable")
	for range 2 * MaxAttempts {
		if _, allowed, err := a.Check(t.Context(), "192.0.2.1", func() (bool, error) { return false, unreadable }); !allowed || !errors.Is(err, unreadable) {
			t.Fatalf("allowed %v, %v", allowed, err)
		}
	}
	for range 10 {
		func() {
			defer func() { _ = recover() }()
			_, _, _ = a.Check(t.Context(), "192.0.2.1", func() (bool, error) { panic("a defect of the program") })
		}()
	}
	if a.Allowed("192.0.2.1") {
		t.Error("guesses that make the check panic are not limited")
	}
}
