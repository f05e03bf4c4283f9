package cluster

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/cluster/internal/placement"
)

// A role that is reserved for a member is looked for while the reservation
// lasts, whatever else is going on.
func TestReservationsAreSeenInTime(t *testing.T) {
	t.Parallel()
	const interval = 500 * time.Millisecond
	self := uuid.Max // it checks last
	for _, settled := range []bool{true, false} {
		for _, cost := range []time.Duration{0, interval / 10, 2 * interval} { // of a read; a slow one is not repeated immediately
			b := assumption{self: self, roles: 10000}
			b.updateMembers([]placement.Node{{ID: self}, {ID: uuid.New()}}, time.Second)
			b.confirmed, b.readAt, b.cost = settled, time.Second, cost
			heard := time.Second + 10*time.Millisecond
			b.scheduleRead(heard, interval, false)
			if b.nextRead > heard+interval/2 {
				t.Errorf("settled %t, reads take %v: heard at %v, looks at %v", settled, cost, heard, b.nextRead)
			}
		}
	}
}
