package tenure_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
)

// Trust counts from before a heartbeat is sent, including the first one of a
// session: the server's timer may have started then (Invariant 1).
func TestTrustCountsFromBeforeHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		db.prepare = func(c *conn) {
			c.onHeartbeat = func() error {
				time.Sleep(2 * time.Second)
				return nil
			}
		}
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		if left := term.Remaining(); left != 7*time.Second { // 9 s after the first heartbeat was sent
			t.Errorf("invariant 1: trust lasts %v after a first heartbeat of 2s, not 7s", left)
		}
		for beats := db.last().count("heartbeat"); db.last().count("heartbeat") == beats; {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(2 * time.Second) // the second is acknowledged
		if left := term.Remaining(); left > 7*time.Second {
			t.Errorf("invariant 1: trust lasts %v after a heartbeat of 2s, not 7s", left)
		}
	})
}

// A term that is granted after trust has ended does not begin, whether or not
// the end has been noticed (Invariant 1).
func TestNoTermBeginsAfterTrustEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := &steppedClock{Clock: clocks.System()}
		db := newDatabase()
		db.prepare = func(c *conn) {
			if c.number > 1 {
				return
			}
			c.onAcquire = func(tenure.Role) *tenure.AcquireResult {
				clock.step(time.Hour) // the machine was suspended during the call
				return nil
			}
		}
		node := open(t, db, func(c *tenure.Config) { c.Clock = clock })
		defer closeNode(t, node)
		e, rec := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		want(t, "sessions", db.opened, 2)
		acquired := 0
		rec.summary()
		for _, event := range rec.events {
			if event.Kind == tenure.EventAcquired {
				acquired++
				if event.Term != term {
					t.Errorf("invariant 1: term %d began after trust had ended", event.Term.Number())
				}
			}
		}
		want(t, "terms that began", acquired, 1)
	})
}
