package tenure_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// While a role is reserved, only its target tries the lock: other candidates
// neither acquire it nor try, even after notifications.
func TestReservationBindsOtherCandidates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		leader, target, other := open(t, db), open(t, db), open(t, db)
		defer closeNode(t, leader)
		defer closeNode(t, target)
		defer closeNode(t, other)
		c := db.last()
		e, _ := elect(t, leader, tenure.ElectionConfig{})
		lead(t, e)
		standby, _ := elect(t, other, tenure.ElectionConfig{})
		wantError(t, "Start", standby.Start(context.Background()), nil)
		synctest.Wait()
		wantError(t, "HandOver", e.HandOver(t.Context(), target.ID()), nil) // the target does not campaign yet
		handedOver := time.Now()
		synctest.Wait()
		if standby.IsLeader() {
			t.Fatal("a standby took the role during its reservation for another node")
		}
		tried := c.count("try")
		for range 40 {
			db.wake()
			time.Sleep(100 * time.Millisecond)
		}
		want(t, "attempts of a standby during the reservation", c.count("try"), tried)
		if db.holder("r") != nil {
			t.Fatal("a node took the role during its reservation for another node")
		}
		next, _ := elect(t, target, tenure.ElectionConfig{})
		want(t, "the target leads at once", lead(t, next).NodeID(), target.ID())
		want(t, "time since the hand-over", time.Since(handedOver), 4*time.Second)
	})
}

// A reservation ends after one CheckInterval if its target does not campaign.
func TestReservationExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		lead(t, e)
		wantError(t, "HandOver", e.HandOver(t.Context(), uuid.New()), nil)
		handedOver := time.Now()
		if _, err := e.WaitForLeadership(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(t, "time without a leader", time.Since(handedOver), 5*time.Second)
	})
}

// A node does not hand a role over to itself or to no node: a request for that
// changes nothing, and a call returns an error.
func TestHandOverNeedsAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		for _, target := range []uuid.UUID{node.ID(), uuid.Nil} {
			request := tenure.Request{Kind: tenure.RequestHandOver, Role: "r", Target: target}
			wantError(t, "Request", db.Request(t.Context(), request), nil)
			time.Sleep(time.Minute)
			wantError(t, "HandOver", e.HandOver(t.Context(), target), tenure.ErrInvalidConfig)
			wantError(t, "HandleRequest", e.HandleRequest(t.Context(), request), tenure.ErrInvalidConfig)
			time.Sleep(time.Minute)
		}
		if !term.Valid() || e.Term() != term {
			t.Error("the leader gave up its term")
		}
	})
}
