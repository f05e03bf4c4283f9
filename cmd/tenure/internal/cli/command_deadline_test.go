//go:build linux

package cli

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// lostAt is the time at which a process logged that trust in its term ended.
var lostAt = regexp.MustCompile(`(?m)^time=(\S+) .*msg=lost`)

// While heartbeats stay unanswered, a command that ignores SIGTERM is killed 100 ms before
// trust ends. The test measures the time between its death and the end of trust. Other
// programs on the machine delay each of the two.
func TestCommandIsKilled100msBeforeTrustEnds(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	var leads []time.Duration
	for range 5 {
		place := newPlace(t)
		a := newArena(t, place, "--lease", "3s")
		node := a.enter("node", childUnguarded, childStubborn)
		news := a.next()
		handle, err := unix.PidfdOpen(news.PID, 0)
		if err != nil {
			t.Fatal(err)
		}
		place.freeze(t)
		awaitDeath(t, handle)
		died := time.Now()
		node.awaitLog("msg=lost")
		lost, err := time.Parse(time.RFC3339Nano, lostAt.FindStringSubmatch(node.log())[1])
		if err != nil {
			t.Fatal(err)
		}
		leads = append(leads, lost.Sub(died))
	}
	slices.Sort(leads)
	t.Logf("the command died before trust ended by %v", leads)
	if median := leads[len(leads)/2]; median < 60*time.Millisecond || median > 150*time.Millisecond {
		t.Errorf("invariant 4: the command died %v before trust ended half of the time, want about 100ms", median)
	}
}
