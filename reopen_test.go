package tenure_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
)

// A role that became vacant while a standby had no session is tried when the standby has
// one again, and again soon: the server may just be releasing the locks of the node's
// last session. The check interval is for notifications that were lost.
func TestStandbyCampaignsWhenItsNextSessionOpens(t *testing.T) {
	for name, held := range map[string]int{"the lock is free": 0, "the lock is about to be released": 3} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newDatabase()
				db.seize("r")
				node := open(t, db, func(c *tenure.Config) { c.CheckInterval = time.Hour })
				defer closeNode(t, node)
				e, _ := elect(t, node, tenure.ElectionConfig{})
				if err := e.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute) // it has found the role held
				db.mu.Lock()
				db.refuse = errGone
				db.prepare = func(c *conn) {
					c.onAcquire = func(tenure.Role) *tenure.AcquireResult {
						if held--; held >= 0 {
							return &tenure.AcquireResult{Outcome: tenure.OutcomeHeld}
						}
						return nil
					}
				}
				db.mu.Unlock()
				db.last().kill()
				time.Sleep(time.Second) // the node has noticed it
				db.free("r")
				db.mu.Lock()
				db.refuse = nil
				db.mu.Unlock()
				time.Sleep(time.Minute)
				synctest.Wait()
				if !e.IsLeader() {
					t.Error("invariant 7: a standby does not try a role that became vacant while it had no session")
				}
			})
		})
	}
}

// Sessions that open and are lost at their first statement are opened ever less often, as
// after failed attempts. The second one follows immediately: a session can be lost by
// accident.
func TestSessionsLostAtTheirFirstStatementAreOpenedLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		var opened []time.Duration
		began := time.Now()
		db.prepare = func(c *conn) {
			opened = append(opened, time.Since(began))
			c.onAcquire = func(tenure.Role) *tenure.AcquireResult {
				c.kill()
				return nil
			}
		}
		node := open(t, db, func(*tenure.Config) {})
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		if err := e.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		db.mu.Lock()
		defer db.mu.Unlock()
		if n := len(opened); n < 20 || n > 70 {
			t.Errorf("%d sessions were opened within a minute, want 20 to 70", n)
		}
		if len(opened) > 1 && opened[1] > 10*time.Millisecond {
			t.Errorf("the second session was opened after %v, want it immediately", opened[1])
		}
	})
}
