package main

import (
	"slices"
	"testing"
	"time"
)

// TestPolicies: what is started again.
func TestPolicies(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		policy restartPolicy
		code   int
		again  bool
	}{
		{restartNever, 0, false}, {restartNever, 1, false},
		{restartOnFailure, 0, false}, {restartOnFailure, 1, true}, {restartOnFailure, 137, true},
		{restartAlways, 0, true}, {restartAlways, 1, true},
	} {
		if again := test.policy.again(test.code); again != test.again {
			t.Errorf("%s after %d: %v", test.policy, test.code, again)
		}
	}
	var pause restartPause
	var pauses []time.Duration
	for range 10 {
		pauses = append(pauses, pause.next())
	}
	want := []time.Duration{100e6, 200e6, 400e6, 800e6, 1600e6, 3200e6, 6400e6, 12800e6, 25600e6, 30e9}
	if !slices.Equal(pauses, want) {
		t.Errorf("pauses %v, want %v", pauses, want)
	}
	pause.ran(healthyLife - 1)
	if next := pause.next(); next != longestPause {
		t.Errorf("%v after a short life", next)
	}
	pause.ran(healthyLife)
	if next := pause.next(); next != shortestPause {
		t.Errorf("%v after a long life", next)
	}
}
