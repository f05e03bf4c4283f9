package dialects

import (
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/lease"
)

// The row of counters is lost or older than the other tables, as after a partial restore.
// Nodes open sessions with new numbers, and wait for the leader's lease.
func TestBackendLostCountersDoNotKeepNodesOut(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"lost":  "DELETE FROM tenure_lease_news",                // Set by hand: by a partial restore.
		"older": "UPDATE tenure_lease_news SET incarnation = 0", // Set by hand: by a partial restore.
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onKinds(t, kinds, func(t *testing.T, k kind) {
				db := k.open(t)
				backend := newBackend(t, db, k.dialect, lease.Config{})
				opens(t, backend, "standby")
				leader := acquires(t, backend, "leader")
				execute(t, db, statement)
				next := opens(t, backend, "next")
				if next.Incarnation() <= leader.Incarnation() {
					t.Errorf("session %d follows session %d", next.Incarnation(), leader.Incarnation())
				}
				results, err := next.TryAcquire([]tenure.AcquireRequest{{Role: tenure.NamedRole(backendRole)}})
				if err != nil || results[0].Outcome != tenure.OutcomeHeld {
					t.Errorf("a role that is led: %+v, %v; want it held", results, err)
				}
				if _, err := leader.Heartbeat(tenure.Load{}); err != nil {
					t.Errorf("the leader's heartbeat: %v", err)
				}
			})
		})
	}
}
