package lead

import (
	"slices"
	"testing"
	"time"
)

func TestRestartPoliciesDecideByExitCode(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		policy RestartPolicy
		code   int
		again  bool
	}{
		{RestartNever, 0, false}, {RestartNever, 1, false},
		{RestartOnFailure, 0, false}, {RestartOnFailure, 1, true}, {RestartOnFailure, 137, true},
		{RestartAlways, 0, true}, {RestartAlways, 1, true},
	} {
		if again := test.policy.Again(test.code); again != test.again {
			t.Errorf("%s after %d: %v", test.policy, test.code, again)
		}
	}
	var pause RestartPause
	var pauses []time.Duration
	for range 10 {
		pauses = append(pauses, pause.Next())
	}
	want := []time.Duration{100e6, 200e6, 400e6, 800e6, 1600e6, 3200e6, 6400e6, 12800e6, 25600e6, 30e9}
	if !slices.Equal(pauses, want) {
		t.Errorf("pauses %v, want %v", pauses, want)
	}
	pause.Ran(time.Minute - 1)
	if next := pause.Next(); next != 30*time.Second {
		t.Errorf("the pause after a run of less than a minute is %v, want 30s", next)
	}
	if n := pause.Restarts(); n != 11 {
		t.Errorf("%d restarts in a row, want 11", n)
	}
	pause.Ran(time.Minute)
	if next := pause.Next(); next != 100*time.Millisecond {
		t.Errorf("the pause after a run of a minute is %v, want 100ms", next)
	}
	if n := pause.Restarts(); n != 1 {
		t.Errorf("%d restarts after a long life, want 1", n)
	}
}
