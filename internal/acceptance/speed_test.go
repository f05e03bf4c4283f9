package acceptance_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// TestRoleIsTakenOverInMilliseconds: however a term ends, another node leads about as
// fast as the server passes a bare lock on. It does not run beside other tests.
func TestRoleIsTakenOverInMilliseconds(t *testing.T) {
	server := pgtest.Shared(t)
	rejoined := 0
	for name, end := range map[string]struct {
		how pgtest.Handover
		end func(c *cluster, leader, standby *member)
	}{
		"a crash": {pgtest.ByCrash, func(_ *cluster, leader, _ *member) {
			for _, connection := range leader.wire.Connections() {
				connection.Cut()
			}
		}},
		"the end of its session": {pgtest.ByCrash, func(c *cluster, leader, _ *member) {
			execute(c.t, pgtest.Conn(c.t, c.dsn), terminate, leader.Name())
		}},
		"a step-down": {pgtest.ByUnlock, func(c *cluster, leader, _ *member) {
			if err := leader.election.StepDown(c.t.Context()); err != nil {
				c.t.Error(err)
			}
		}},
		"a hand-over": {pgtest.ByUnlock, func(c *cluster, leader, standby *member) {
			if err := leader.election.HandOver(c.t.Context(), standby.ID()); err != nil {
				c.t.Error(err)
			}
		}},
		"a shutdown": {pgtest.ByUnlock, func(c *cluster, leader, _ *member) {
			if err := leader.Close(c.t.Context()); err != nil {
				c.t.Error(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.config.Lease, c.config.CheckInterval = 0, 0 // the defaults: only notifications are fast
			if end.how == pgtest.ByCrash {
				c.checks.tolerate() // the leader learns of the cut connection at the same time
			}
			join := func() *member {
				rejoined++
				return c.joinWired(fmt.Sprintf("node %d", rejoined), address(server))
			}
			one, two := join(), join()
			leader, term := c.someoneElse(0, one, two)
			server.JudgeSpeed(t, "the takeover after "+name, end.how, func() time.Duration {
				one.awaitConnected()
				two.awaitConnected()
				standby := one
				if leader == one {
					standby = two
				}
				c.awaitWatched(leader)
				start := time.Now()
				end.end(c, leader, standby)
				former := leader
				leader, term = c.someoneElse(term.Number(), one, two)
				took := time.Since(start)
				if name == "a shutdown" {
					one, two = leader, join()
				}
				if leader == former && end.how == pgtest.ByUnlock { // one that lost its connection may be back first
					t.Errorf("%s leads again; want another node", leader.Name())
				}
				return took
			})
		})
	}
}

// awaitWatched waits until another node waits for the end of a member's session.
func (c *cluster) awaitWatched(m *member) {
	c.t.Helper()
	eventually(c.t, pgtest.Conn(c.t, c.dsn), `
		SELECT EXISTS (
			SELECT
			FROM pg_locks l
			JOIN `+c.quoted("nodes")+` n ON l.objid = n.incarnation::bigint::oid
			WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND NOT l.granted AND n.id = $1
		)`, m.ID())
}
