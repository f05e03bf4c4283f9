package tenure_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// While a role is reserved, other candidates do not acquire it, and try only after
// notifications.
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
		wantError(t, "HandOver", e.HandleRequest(t.Context(), tenure.Request{Kind: tenure.RequestHandOver, Target: target.ID()}), nil) // the target does not campaign yet
		handedOver := time.Now()
		synctest.Wait()
		if standby.IsLeader() {
			t.Fatal("a standby took the role during its reservation for another node")
		}
		tried := c.count("try")
		time.Sleep(3 * time.Second)
		want(t, "attempts of a standby without a notification", c.count("try"), tried)
		for range 10 {
			db.wake()
			time.Sleep(100 * time.Millisecond)
		}
		want(t, "attempts of a standby after ten notifications", c.count("try"), tried+10)
		if db.holder("r") != nil {
			t.Fatal("a node took the role during its reservation for another node")
		}
		next, _ := elect(t, target, tenure.ElectionConfig{})
		want(t, "the target leads immediately", lead(t, next).NodeID(), target.ID())
		want(t, "time since the hand-over", time.Since(handedOver), 4*time.Second)
	})
}

// The target of a reservation can lead and leave while every notification is lost:
// another candidate tries again within its check interval.
func TestReservedRoleIsTriedAtCheckIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		db.last().answersFirst(tenure.AcquireResult{Outcome: tenure.OutcomeHeld, RetryIn: time.Hour})
		e, _ := elect(t, node, tenure.ElectionConfig{})
		wantError(t, "Start", e.Start(t.Context()), nil)
		time.Sleep(node.Timing().CheckInterval)
		synctest.Wait()
		want(t, "leads within a check interval", e.IsLeader(), true)
		wantError(t, "Shutdown", e.Shutdown(t.Context()), nil)
	})
}

// A role whose target has led and left is led again immediately, although the time of its
// reservation has not passed.
func TestReservationEndsWithTargetsTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		leader, target, other := open(t, db), open(t, db), open(t, db)
		defer closeNode(t, leader)
		defer closeNode(t, target)
		defer closeNode(t, other)
		e, _ := elect(t, leader, tenure.ElectionConfig{})
		lead(t, e)
		standby, _ := elect(t, other, tenure.ElectionConfig{})
		wantError(t, "Start", standby.Start(context.Background()), nil)
		next, _ := elect(t, target, tenure.ElectionConfig{NoReacquire: true})
		wantError(t, "HandleRequest", e.HandleRequest(t.Context(), tenure.Request{Kind: tenure.RequestHandOver, Target: target.ID()}), nil)
		handedOver := time.Now()
		synctest.Wait()
		lead(t, next)
		wantError(t, "StepDown", next.StepDown(t.Context()), nil)
		synctest.Wait()
		want(t, "led again", e.IsLeader() || standby.IsLeader(), true)
		want(t, "time since the hand-over", time.Since(handedOver), time.Duration(0))
	})
}

// A node that stepped down leaves the role to others for a while. If no other node
// leads it, it leads again; if another node has led, or the role is handed back, it
// does not wait.
func TestStepDownPauseEndsWithNextTerm(t *testing.T) {
	for name, handBack := range map[string]bool{"stepped down": false, "handed back": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newDatabase()
				first, second := open(t, db), open(t, db)
				defer closeNode(t, first)
				defer closeNode(t, second)
				a, _ := elect(t, first, tenure.ElectionConfig{})
				lead(t, a)
				b, _ := elect(t, second, tenure.ElectionConfig{})
				wantError(t, "Start", b.Start(context.Background()), nil)
				began := time.Now()
				wantError(t, "StepDown", a.StepDown(t.Context()), nil)
				synctest.Wait()
				want(t, "the standby leads", b.IsLeader(), true)
				if handBack {
					wantError(t, "HandOver", b.HandOver(t.Context(), first.ID()), nil)
				} else {
					wantError(t, "StepDown", b.StepDown(t.Context()), nil)
				}
				synctest.Wait()
				want(t, "the first node leads again", a.IsLeader(), true)
				want(t, "vacant for", time.Since(began), time.Duration(0))
			})
		})
	}
}

// A reservation ends after one CheckInterval if its target does not campaign.
func TestReservationExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		lead(t, e)
		wantError(t, "HandleRequest", e.HandleRequest(t.Context(), tenure.Request{Kind: tenure.RequestHandOver, Target: uuid.New()}), nil)
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

// A hand-over to a node that does not campaign for the role is refused, and the leader
// keeps its term. A node that campaigns leads immediately.
func TestHandOverToNodeThatDoesNotCampaignIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		leader, target := open(t, db), open(t, db)
		defer closeNode(t, leader)
		defer closeNode(t, target)
		e, _ := elect(t, leader, tenure.ElectionConfig{})
		term := lead(t, e)
		next, _ := elect(t, target, tenure.ElectionConfig{})
		refused := func(what string) {
			t.Helper()
			wantError(t, what, e.HandOver(t.Context(), target.ID()), tenure.ErrNotActive)
			time.Sleep(time.Minute)
			want(t, what+": the leader keeps its term", term.Valid() && e.Term() == term, true)
		}
		refused("a target whose election has not started")
		_, err := next.TryAcquire(t.Context())
		wantError(t, "TryAcquire", err, tenure.ErrHeld)
		time.Sleep(time.Minute)
		refused("a target that tried long ago")
		wantError(t, "Start", next.Start(context.Background()), nil)
		synctest.Wait()
		wantError(t, "Drain", target.Drain(t.Context(), nil), nil)
		refused("a target that is drained")
		wantError(t, "Undrain", target.Undrain(t.Context()), nil)
		began := time.Now()
		wantError(t, "HandOver", e.HandOver(t.Context(), target.ID()), nil)
		synctest.Wait()
		want(t, "the target leads", next.IsLeader(), true)
		want(t, "vacant for", time.Since(began), time.Duration(0))
	})
}

// A node that calls TryAcquire again and again takes a role that is handed over to it.
func TestHandOverToNodeThatPollsIsAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		leader, target := open(t, db), open(t, db)
		defer closeNode(t, leader)
		defer closeNode(t, target)
		e, _ := elect(t, leader, tenure.ElectionConfig{})
		lead(t, e)
		next, _ := elect(t, target, tenure.ElectionConfig{})
		_, err := next.TryAcquire(t.Context())
		wantError(t, "TryAcquire", err, tenure.ErrHeld)
		time.Sleep(time.Second)
		wantError(t, "HandOver", e.HandOver(t.Context(), target.ID()), nil)
		_, err = next.TryAcquire(t.Context())
		wantError(t, "TryAcquire", err, nil)
		want(t, "the target leads", next.IsLeader(), true)
	})
}

// OnOffer decides about roles that the node does not campaign for yet. A function that
// panics declines.
func TestOnOfferDecidesAboutRolesWithoutElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		leader, target := open(t, db), open(t, db)
		defer closeNode(t, leader)
		defer closeNode(t, target)
		e, _ := elect(t, leader, tenure.ElectionConfig{})
		lead(t, e)
		remove := target.OnOffer(func(string) bool { panic("a fault") })
		wantError(t, "HandOver to a node whose function panics", e.HandOver(t.Context(), target.ID()), tenure.ErrNotActive)
		remove()
		remove = target.OnOffer(func(string) bool { return true })
		remove()
		wantError(t, "HandOver after the function was removed", e.HandOver(t.Context(), target.ID()), tenure.ErrNotActive)
		defer target.OnOffer(func(role string) bool { return role == e.Role().Name() })()
		wantError(t, "HandOver", e.HandOver(t.Context(), target.ID()), nil)
	})
}
