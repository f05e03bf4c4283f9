package postgres

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres/internal/link"
)

// A server process that hangs, as in an uninterruptible wait, keeps the role, since no signal
// ends it. The history has the whole vacancy, although the leader has opened a new session
// in the meantime.
func TestVacancyOfHungServerProcessIsRecorded(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Shared(t)
	b := backendOn(t, server.DSN(), Config{Schema: server.Schema(t)})
	leader, rival := open(t, b, brief), open(t, b)
	leader.take("scheduler")
	leader.beat()
	resume := pgtest.PauseBackend(t, server.DSN(), int32(leader.listener.pid), "ClientRead")
	hung := time.Now()
	leader.trusted.Store(false)
	leader.Abort() // trust has ended
	leader.openAgain()
	for time.Since(hung) < 3*stuckLease {
		rival.refused("scheduler")
		rival.beat()
		rival.wait(200 * time.Millisecond)
	}
	resume()
	resumed := time.Now()
	next := rival.win("scheduler")
	least, most := resumed.Sub(hung)-time.Second, time.Since(hung)
	if next.PrecedingVacancy < least || next.PrecedingVacancy > most {
		t.Errorf("the vacancy was %v; want %v to %v", next.PrecedingVacancy, least, most)
	}
	vacant := row[float64](t, b, "SELECT vacant_ms FROM {terms} WHERE role = 'scheduler'")
	if got := link.FromMilliseconds(vacant); got != next.PrecedingVacancy {
		t.Errorf("the row has the vacancy %v; want %v", got, next.PrecedingVacancy)
	}
}
