package dialects

import (
	"errors"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// If an operator drops the tables under a leader, its term ends at the next poll or
// heartbeat, long before its trust window would: another node can lead as soon as it has
// created new tables.
func TestBackendDroppedTablesEndTheSession(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	for _, how := range []struct {
		name        string
		lease, poll time.Duration
		most        time.Duration
	}{
		// The first heartbeat would come too late.
		{"noticed by a poll", 90 * time.Second, 100 * time.Millisecond, 20 * time.Second},
		// A poll would come too late.
		{"noticed by a heartbeat", 30 * time.Second, time.Hour, 20 * time.Second},
	} {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			onKinds(t, kinds, func(t *testing.T, k kind) {
				c := newCluster(t, k)
				c.config.Lease, c.lease.PollInterval = how.lease, how.poll
				a := c.join("a").campaign(backendRole)
				term := leads(t, a)
				db := k.connect(t, c.source)
				for _, table := range []string{"sessions", "seats", "history", "requests", "news"} {
					execute(t, db, "DROP TABLE tenure_lease_"+table)
				}
				dropped := time.Now()
				if cause := ended(t, term); !errors.Is(cause, tenure.ErrSuperseded) {
					t.Errorf("the term ended with %v; want ErrSuperseded", cause)
				}
				if took := time.Since(dropped); took > how.most {
					t.Errorf("the term ended after %v; want at most %v", took, how.most)
				}
				if next := leaderOf(t, term.Number(), a); next.Number() <= term.Number() {
					t.Errorf("term %d follows term %d", next.Number(), term.Number())
				}
			})
		})
	}
}
