package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/retry"
)

// slotElections returns elections for the roles s/1, s/2 and so on, in one group.
func slotElections(t *testing.T, node *tenure.Node, count, limit int, change ...func(*tenure.ElectionConfig)) []*tenure.Election {
	t.Helper()
	cfg := tenure.ElectionConfig{Group: "s", GroupLimit: limit}
	for _, c := range change {
		c(&cfg)
	}
	elections := make([]*tenure.Election, count)
	for i := range elections {
		e, err := node.ElectionWith(tenure.NamedRole(fmt.Sprintf("s/%d", i+1)), cfg)
		if err != nil {
			t.Fatal(err)
		}
		elections[i] = e
	}
	return elections
}

func startAll(t *testing.T, elections []*tenure.Election) {
	t.Helper()
	for _, e := range elections {
		wantError(t, "Start", e.Start(context.Background()), nil)
	}
	synctest.Wait()
}

// led returns the roles that the elections lead, such as "s/1 s/3 ".
func led(elections []*tenure.Election) (roles string) {
	synctest.Wait()
	for _, e := range elections {
		if e.IsLeader() {
			roles += e.Role().Name() + " "
		}
	}
	return roles
}

// A node asks for as many roles of a group as it may lead, and for no other one while
// it leads them, also after notifications.
func TestGroupLimitsRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		c := db.last()
		var asked []string
		c.set(func(c *conn) {
			c.onAcquire = func(role tenure.Role) *tenure.AcquireResult {
				asked = append(asked, role.Name())
				return nil
			}
		})
		slots := slotElections(t, node, 5, 2)
		other, err := node.Election(tenure.NamedRole("other"))
		wantError(t, "Election", err, nil)
		startAll(t, append(slots, other))
		for range 20 {
			db.wake()
			time.Sleep(time.Second)
		}
		want(t, "leads", led(slots), "s/1 s/2 ")
		want(t, "leads the role without a group", other.IsLeader(), true)
		want(t, "roles asked for", len(asked), 3)
		want(t, "state of an election that waits", slots[4].State(), tenure.Follower)
	})
}

// A candidate with room tries every role of the group, one after the other.
func TestGroupTriesEveryRole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		for i := range 9 {
			db.seize(fmt.Sprintf("s/%d", i+1))
		}
		node := open(t, db)
		defer closeNode(t, node)
		slots := slotElections(t, node, 10, 1)
		startAll(t, slots)
		want(t, "leads", led(slots), "s/10 ")

		db.free("s/3") // the node has no room: another one would take it
		time.Sleep(time.Minute)
		want(t, "leads", led(slots), "s/10 ")
		began := time.Now()
		wantError(t, "StepDown", slots[9].StepDown(t.Context()), nil)
		_, err := slots[2].WaitForLeadership(t.Context())
		wantError(t, "WaitForLeadership", err, nil)
		want(t, "vacant room after a step-down", time.Since(began) < 10*time.Millisecond, true)
		want(t, "leads", led(slots), "s/3 ")
	})
}

// A node that has left a slot tries the others immediately, also if the notifications of
// their vacancies were lost and its retry strategy waits.
func TestGroupUsesRoomWithoutNotification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		db.seize("s/1")
		db.seize("s/2")
		node := open(t, db)
		defer closeNode(t, node)
		slots := slotElections(t, node, 2, 1, func(c *tenure.ElectionConfig) { c.Retry = retry.FixedInterval{Interval: time.Hour} })
		startAll(t, slots)
		time.Sleep(time.Minute)
		vacate := func(role string) {
			db.mu.Lock()
			defer db.mu.Unlock()
			db.silent = true
			delete(db.holders, role)
		}
		vacate("s/2")
		_, err := slots[1].TryAcquire(t.Context())
		wantError(t, "TryAcquire", err, nil)
		vacate("s/1")
		began := time.Now()
		wantError(t, "StepDown", slots[1].StepDown(t.Context()), nil)
		want(t, "leads the vacant role", led(slots), "s/1 ")
		want(t, "vacant room after a step-down", time.Since(began) < 10*time.Millisecond, true)
	})
}

// When a leader dies, a standby with room takes over in milliseconds, and a node
// without room does not. The node that comes back is a candidate for every role.
func TestGroupFreedRoleIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		var nodes [][]*tenure.Election
		var conns []*conn
		for range 4 {
			node := open(t, db)
			t.Cleanup(func() { closeNode(t, node) })
			conns = append(conns, db.last())
			slots := slotElections(t, node, 3, 1)
			startAll(t, slots)
			nodes = append(nodes, slots)
		}
		for i, wanted := range []string{"s/1 ", "s/2 ", "s/3 ", ""} {
			want(t, fmt.Sprintf("node %d leads", i), led(nodes[i]), wanted)
		}
		time.Sleep(7 * time.Second)
		db.refuseAll(errGone)
		began := time.Now()
		conns[1].kill()
		_, err := nodes[3][1].WaitForLeadership(t.Context())
		wantError(t, "WaitForLeadership", err, nil)
		want(t, "taken in milliseconds", time.Since(began) < 50*time.Millisecond, true)
		db.refuseAll(nil)
		time.Sleep(time.Minute)
		began = time.Now()
		wantError(t, "StepDown", nodes[0][0].StepDown(t.Context()), nil)
		_, err = nodes[1][0].WaitForLeadership(t.Context())
		wantError(t, "WaitForLeadership", err, nil)
		want(t, "taken in milliseconds", time.Since(began) < 50*time.Millisecond, true)
		for i, wanted := range []string{"", "s/1 ", "s/3 ", "s/2 "} {
			want(t, fmt.Sprintf("node %d leads", i), led(nodes[i]), wanted)
		}
	})
}

// Work that still runs after its term was lost uses room: the node would run more
// work than the limit permits.
func TestGroupCountsRunningWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		slots := slotElections(t, node, 2, 1)
		startAll(t, slots)
		guard, err := slots[0].Guard()
		wantError(t, "Guard", err, nil)
		db.last().kill()
		time.Sleep(time.Minute)
		want(t, "leads while the work runs", led(slots), "")
		guard.Done()
		want(t, "leads after the work has returned", led(slots) != "", true)
	})
}

// A role whose lock is held while its term cannot begin uses room until the attempt
// ends.
func TestGroupCountsPendingAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		c := db.last()
		c.set(func(c *conn) {
			c.onAcquire = func(role tenure.Role) *tenure.AcquireResult {
				if role.Name() != "s/1" {
					return nil
				}
				db.mu.Lock()
				defer db.mu.Unlock()
				db.holders["s/1"] = c
				return &tenure.AcquireResult{Outcome: tenure.OutcomePending, RetryIn: time.Second}
			}
		})
		slots := slotElections(t, node, 2, 1)
		startAll(t, slots)
		want(t, "state", slots[0].State(), tenure.Acquiring)
		time.Sleep(time.Minute)
		want(t, "leads while an attempt is pending", led(slots), "")
		wantError(t, "Shutdown", slots[0].Shutdown(t.Context()), nil)
		want(t, "leads after the attempt", led(slots), "s/2 ")
	})
}

// During its reconnect grace a role keeps its room.
func TestGroupCountsReconnectGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		slots := slotElections(t, node, 2, 1, func(c *tenure.ElectionConfig) { c.ReconnectGrace = time.Minute })
		startAll(t, slots)
		db.refuseAll(errGone)
		db.last().kill()
		time.Sleep(time.Second)
		want(t, "state", slots[0].State(), tenure.Reconnecting)
		db.refuseAll(nil)
		time.Sleep(5 * time.Second)
		want(t, "leads", led(slots), "s/1 ")

		db.refuseAll(errGone)
		db.last().kill()
		synctest.Wait()
		wantError(t, "Shutdown", slots[0].Shutdown(t.Context()), nil)
		db.refuseAll(nil)
		time.Sleep(5 * time.Second)
		want(t, "leads after the other election stopped", led(slots), "s/2 ")
	})
}

// A node whose work returned leaves all roles of the group to other candidates, and
// its terms count together.
func TestGroupStaysBehindAfterFailedWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		var mu sync.Mutex
		var begun []time.Duration
		var attempts []int
		start := time.Now()
		slots := slotElections(t, node, 3, 1, func(c *tenure.ElectionConfig) {
			c.WorkRetry = retry.Func(func(f retry.Failure) (time.Duration, bool) {
				mu.Lock()
				defer mu.Unlock()
				attempts = append(attempts, f.Attempt)
				return 10 * time.Second, true
			})
		})
		for _, e := range slots {
			go func() {
				_ = e.Run(t.Context(), func(context.Context, *tenure.Term) error {
					mu.Lock()
					defer mu.Unlock()
					begun = append(begun, time.Since(start).Round(time.Second))
					return errors.New("broken")
				})
			}()
		}
		time.Sleep(35 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		want(t, "terms began", fmt.Sprint(begun), "[0s 10s 20s 30s]")
		want(t, "attempts", fmt.Sprint(attempts), "[1 2 3 4]")
	})
}

// A role is not handed over to a node that has no room for it, by a call, a request
// or a drain: it would have no leader until the reservation ends.
func TestGroupRefusesHandOverWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		refusesHandOverWithoutRoom(t, db.database, db)
	})
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase() // without a registry, as with leases
		refusesHandOverWithoutRoom(t, db, db)
	})
}

func refusesHandOverWithoutRoom(t *testing.T, db *database, backend tenure.Backend) {
	var nodes []*tenure.Node
	var slots [][]*tenure.Election
	for i := range 3 {
		node := open(t, backend)
		t.Cleanup(func() { closeNode(t, node) })
		if i > 0 { // only the leader of s/1 reads requests
			db.last().set(func(c *conn) { c.onRequests = func() error { return errors.New("not for this node") } })
		}
		nodes, slots = append(nodes, node), append(slots, slotElections(t, node, 2, 1))
		startAll(t, slots[len(slots)-1])
	}
	full, free := nodes[1].ID(), nodes[2].ID()
	wantError(t, "HandOver to a node without room", slots[0][0].HandOver(t.Context(), full), tenure.ErrInvalidConfig)
	want(t, "leads after the refusal", led(slots[0]), "s/1 ")

	request := tenure.Request{Kind: tenure.RequestHandOver, Role: "s/1", Target: full}
	wantError(t, "Request", db.Request(t.Context(), request), nil)
	time.Sleep(time.Second)
	want(t, "leads after the refused request", led(slots[0]), "s/1 ")
	db.mu.Lock()
	want(t, "requests that were not read", len(db.requests), 0)
	db.mu.Unlock()

	wantError(t, "HandOver", slots[0][0].HandOver(t.Context(), free), nil)
	want(t, "the target leads", led(slots[2]), "s/1 ")

	began := time.Now()
	wantError(t, "Drain", nodes[2].Drain(t.Context(), func(string) uuid.UUID { return full }), nil)
	_, err := slots[0][0].WaitForLeadership(t.Context())
	wantError(t, "WaitForLeadership", err, nil)
	want(t, "taken in milliseconds", time.Since(began) < 50*time.Millisecond, true)
}

// An attempt that would wait for room is refused.
func TestGroupRefusesTryAcquireWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		slots := slotElections(t, node, 2, 1)
		_, err := slots[0].TryAcquire(t.Context())
		wantError(t, "TryAcquire", err, nil)
		_, err = slots[1].TryAcquire(t.Context())
		wantError(t, "TryAcquire without room", err, tenure.ErrNotActive)
		wantError(t, "Shutdown", slots[0].Shutdown(t.Context()), nil)
		_, err = slots[1].TryAcquire(t.Context())
		wantError(t, "TryAcquire", err, nil)
	})
}

func TestGroupIsValidated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := open(t, newDatabase())
		defer closeNode(t, node)
		slotElections(t, node, 1, 2)
		for _, cfg := range []tenure.ElectionConfig{
			{Group: "s", GroupLimit: 3}, {Group: "t"}, {Group: "t", GroupLimit: -1}, {GroupLimit: 1},
		} {
			_, err := node.ElectionWith(tenure.NamedRole("r"), cfg)
			wantError(t, fmt.Sprintf("%q %d", cfg.Group, cfg.GroupLimit), err, tenure.ErrInvalidConfig)
		}
		_, err := node.Election(tenure.NamedRole("r"))
		wantError(t, "Election after the refusals", err, nil)
	})
}

// A role is not handed over to a node whose room another role keeps, which it does not
// lead: because the work of that role failed, or has not returned after a loss.
func TestGroupRefusesHandOverWhileRoomIsKept(t *testing.T) {
	for name, keep := range map[string]func(*testing.T, *database, *tenure.Election) (end func()){
		"by failed work": func(t *testing.T, _ *database, e *tenure.Election) func() {
			ctx, cancel := context.WithCancel(t.Context())
			returned := make(chan error)
			go func() {
				returned <- e.Run(ctx, func(context.Context, *tenure.Term) error { return errors.New("broken") })
			}()
			return func() {
				cancel()
				wantError(t, "Run", <-returned, nil)
			}
		},
		"by running work": func(t *testing.T, db *database, e *tenure.Election) func() {
			wantError(t, "Start", e.Start(context.Background()), nil)
			synctest.Wait()
			guard, err := e.Guard()
			wantError(t, "Guard", err, nil)
			db.last().kill()
			return guard.Done
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newDatabase()
				leader := open(t, db)
				defer closeNode(t, leader)
				led := slotElections(t, leader, 2, 1)[1]
				term := lead(t, led)
				target := open(t, db)
				defer closeNode(t, target)
				slots := slotElections(t, target, 2, 1, func(c *tenure.ElectionConfig) { c.WorkRetry = retry.FixedInterval{Interval: time.Hour} })
				end := keep(t, db, slots[0])
				wantError(t, "Start", slots[1].Start(context.Background()), nil)
				time.Sleep(time.Minute)
				want(t, "the target leads", slots[0].IsLeader() || slots[1].IsLeader(), false)

				wantError(t, "HandOver to a node whose room is kept", led.HandOver(t.Context(), target.ID()), tenure.ErrNotActive)
				time.Sleep(time.Second)
				want(t, "the leader keeps its term", term.Valid() && led.Term() == term, true)
				end()
				time.Sleep(time.Minute)
				began := time.Now()
				_ = slots[0].Shutdown(t.Context())
				wantError(t, "HandOver to a node with room", led.HandOver(t.Context(), target.ID()), nil)
				synctest.Wait()
				want(t, "the target leads", slots[1].IsLeader(), true)
				want(t, "vacant for", time.Since(began), time.Duration(0))
			})
		})
	}
}
