//go:build linux

package agent_test

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent/server"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/tenuretest"
)

// settling are the times of an agent whose roles settle after the end of a term that
// was not given up.
var settling = tenure.Timing{Lease: 3 * time.Minute, RefreshInterval: time.Minute, Margin: time.Second, Settle: time.Hour}

// A role whose leader died or fell silent settles before its next term begins: work that
// the leader began may still have effects.
func TestRoleSettlesAfterNodeWasLost(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(rawNode){
		"a node that died":  rawNode.close,
		"a node that hangs": func(rawNode) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := startAgent(t, server.Config{Backend: tenuretest.NewDatabase(), Timing: settling})
			lost, next := join(t, path, shortLease), join(t, path, time.Minute)
			lost.acquire("r")
			end(lost)
			got := next.try("r")
			testkit.Within(soon, func() bool { got = next.try("r"); return got.Outcome != tenure.OutcomeHeld })
			if got.Outcome != tenure.OutcomePending {
				t.Errorf("invariant 1: the role of %s: got %+v, want OutcomePending while it settles", name, got)
			}
			// A role that settles for one node of the host belongs to it.
			third := join(t, path, time.Minute)
			if got := third.try("r"); got.Outcome != tenure.OutcomeHeld {
				t.Errorf("invariant 1: a role that settles for another node: got %+v, want OutcomeHeld", got)
			}
			next.close()
			if got := third.try("r"); got.Outcome == tenure.OutcomeGranted {
				t.Errorf("invariant 1: a role that has not settled: got %+v", got)
			}
		})
	}
}
