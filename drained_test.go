package tenure_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
)

// The roles of a node with work in flight are free after a drain. The node is drained
// when its load shows no work, also in a later session.
func TestDrainWithWorkInFlightEndsWithTheWork(t *testing.T) {
	for _, loses := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			db := newRegistry()
			var work atomic.Int64
			work.Store(2)
			node := open(t, db, func(c *tenure.Config) {
				c.Load = func() tenure.Load { return tenure.Load{InFlight: int(work.Load())} }
			})
			defer closeNode(t, node)
			e, _ := elect(t, node, tenure.ElectionConfig{})
			lead(t, e)
			wantError(t, "Drain", node.Drain(t.Context(), nil), tenure.ErrWorkRunning)
			want(t, "held", db.holder("r") != nil, false)
			time.Sleep(time.Minute)
			want(t, "status with work in flight", db.status(), "draining")
			if loses {
				db.last().kill()
			}
			work.Store(0)
			time.Sleep(time.Second)
			want(t, "status when the work has ended", db.status(), "drained")
		})
	}
}

func TestUndrainEndsDrainWithWorkInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		var work atomic.Int64
		work.Store(1)
		node := open(t, db, func(c *tenure.Config) {
			c.Load = func() tenure.Load { return tenure.Load{InFlight: int(work.Load())} }
		})
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		lead(t, e)
		wantError(t, "Drain", node.Drain(t.Context(), nil), tenure.ErrWorkRunning)
		undrain(t, node)
		if err := node.UpdateDescription(t.Context(), func(d *tenure.Description) { d.Status = tenure.StatusDraining }); err != nil {
			t.Fatal(err)
		}
		work.Store(0)
		time.Sleep(time.Minute)
		want(t, "status, which no drain set", db.status(), "draining")
	})
}

// A drain whose caller has left is reported when the work under a term has returned.
func TestDrainWithoutCallerEndsWithTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		guard, _ := lead(t, e).Guard()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		wantError(t, "Drain", node.Drain(ctx, nil), tenure.ErrWorkRunning)
		time.Sleep(time.Minute)
		want(t, "status with work under a term", db.status(), "draining")
		guard.Done()
		time.Sleep(time.Second)
		want(t, "status when the work has returned", db.status(), "drained")
	})
}
