package httpguard

import (
	"net/netip"
	"testing"
	"time"
)

// TestGuessesFromManyAddressesLockOutNoKnownOne: guesses from many addresses do not lock out users who have
// logged in before.
func TestGuessesFromManyAddressesLockOutNoKnownOne(t *testing.T) {
	t.Parallel()
	now := time.Now()
	a := NewAttempts()
	a.Now = func() time.Time { return now }
	a.Succeeded("192.0.2.1")
	for i := range MaxAllAttempts {
		a.Failed(netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}).String())
	}
	if a.Allowed("198.51.100.250") {
		t.Error("another address may guess")
	}
	if !a.Allowed("192.0.2.1") {
		t.Error("who has logged in before is locked out")
	}
	for range MaxAttempts {
		a.Failed("192.0.2.1")
	}
	if a.Allowed("192.0.2.1") {
		t.Error("who has logged in before may guess without end")
	}
	for i := range 2 * maxKnown {
		a.Succeeded(netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)}).String())
	}
	if len(a.known) > maxKnown {
		t.Errorf("%d addresses are kept", len(a.known))
	}
}
