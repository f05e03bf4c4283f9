package tenure_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/retry"
	"github.com/exactly-one/tenure/tenuretest"
)

const (
	takeOverAfter = 30 * time.Second
	checkInterval = 5 * time.Second                             // the default
	takenOver     = takeOverAfter + checkInterval + time.Second // when a node that could take over has done so
)

// seen is a backend that counts the calls without a session.
type seen struct {
	tenure.Backend

	mu        sync.Mutex
	leaders   int
	requests  []tenure.Request
	onLeaders func(context.Context) error
	onRequest func() error
}

func (s *seen) Leaders(ctx context.Context, roles ...string) ([]tenure.Leader, error) {
	s.mu.Lock()
	s.leaders++
	hook := s.onLeaders
	s.mu.Unlock()
	if hook != nil {
		if err := hook(ctx); err != nil {
			return nil, err
		}
	}
	return s.Backend.Leaders(ctx, roles...)
}

func (s *seen) Request(ctx context.Context, request tenure.Request) error {
	s.mu.Lock()
	s.requests = append(s.requests, request)
	hook := s.onRequest
	s.mu.Unlock()
	if hook != nil {
		if err := hook(); err != nil {
			return err
		}
	}
	return s.Backend.Request(ctx, request)
}

// take returns how often the leaders were read since the last call, and the requests.
func (s *seen) take() (leaders int, requests []tenure.Request) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	leaders, requests = s.leaders, s.requests
	s.leaders, s.requests = 0, nil
	return leaders, requests
}

// ranked opens a node with a priority, which campaigns for the role r.
func ranked(t *testing.T, db tenure.Backend, name, priority string, change ...func(*tenure.ElectionConfig)) (*tenure.Node, *tenure.Election) {
	t.Helper()
	node := open(t, db, func(c *tenure.Config) {
		c.Name, c.Description.Labels = name, map[string]string{"tenure.priority": priority, "zone": "zone of " + name}
	})
	t.Cleanup(func() { closeNode(t, node) })
	cfg := tenure.ElectionConfig{TakeOverAfter: takeOverAfter}
	for _, c := range change {
		c(&cfg)
	}
	e, _ := elect(t, node, cfg)
	wantError(t, "Start", e.Start(context.Background()), nil)
	synctest.Wait()
	return node, e
}

func leadsAfter(t *testing.T, what string, wait time.Duration, e *tenure.Election, wanted bool) {
	t.Helper()
	time.Sleep(wait)
	synctest.Wait()
	want(t, what, e.IsLeader(), wanted)
}

func TestPreferredNodeTakesOverOnceAfterWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		_, low := ranked(t, db, "low", "-1")
		term := low.Term()
		time.Sleep(time.Hour) // how long it has led before does not count
		calls := &seen{Backend: db}
		_, high := ranked(t, calls, "high", "1")
		leadsAfter(t, "high leads before the wait is over", takeOverAfter-time.Millisecond, high, false)
		leadsAfter(t, "high leads after the wait", takenOver-takeOverAfter, high, true)
		cause := context.Cause(term.Context())
		wantError(t, "cause", cause, tenure.ErrHandedOver)
		want(t, "the cause names the requester", strings.Contains(cause.Error(), "preferred node high"), true)

		reads, requests := calls.take()
		want(t, "requests", len(requests), 1)
		want(t, "the leaders were read once in each check interval and before the request", reads >= 6 && reads <= 9, true)
		first := high.Term()
		time.Sleep(time.Hour)
		synctest.Wait()
		want(t, "the term of an hour ago", high.Term(), first)
		reads, requests = calls.take()
		want(t, "requests while it leads", len(requests), 0)
		want(t, "reads while it leads", reads, 0)
	})
}

// A node takes over from the leader that it has compared with itself, not from one that
// began to lead while the request was on its way.
func TestTakeOverSparesNextLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		_, low := ranked(t, db, "low", "-1")
		topNode, top := ranked(t, db, "top", "2", func(c *tenure.ElectionConfig) { c.TakeOverAfter = 0 })
		calls := &seen{Backend: db}
		var term *tenure.Term
		calls.onRequest = func() error {
			if term == nil {
				wantError(t, "HandOver", low.HandOver(t.Context(), topNode.ID()), nil)
				var err error
				term, err = top.WaitForLeadership(t.Context())
				wantError(t, "WaitForLeadership", err, nil)
			}
			return nil
		}
		_, high := ranked(t, calls, "high", "1")
		leadsAfter(t, "high leads", takenOver, high, false)
		want(t, "high has asked, and the most preferred node leads", term != nil, true)
		want(t, "its term is valid", term.Valid(), true)
	})
}

func TestNodeDoesNotTakeOverByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		_, low := ranked(t, db, "low", "0")
		calls := &seen{Backend: db}
		ranked(t, calls, "high", "9", func(c *tenure.ElectionConfig) {
			c.TakeOverAfter, c.Prefers = 0, map[string]string{"zone": "zone of high"}
		})
		leadsAfter(t, "low leads", time.Hour, low, true)
		reads, requests := calls.take()
		want(t, "reads", reads, 0)
		want(t, "requests", len(requests), 0)
	})
}

// The priority decides before the labels, and a role never moves between equals.
func TestRoleMovesOnlyToMorePreferredNode(t *testing.T) {
	for _, test := range []struct {
		name          string
		leader, other string // priorities
		prefers       map[string]string
		moves         bool
	}{
		{"equal priorities", "5", "5", nil, false},
		{"lower priority with more labels", "5", "4", map[string]string{"zone": "zone of other"}, false},
		{"equal priorities and labels", "5", "5", map[string]string{"zone": "neither"}, false},
		{"fewer labels", "5", "5", map[string]string{"zone": "zone of leader"}, false},
		{"more labels", "5", "5", map[string]string{"zone": "zone of other"}, true},
		{"higher priority with fewer labels", "-2", "-1", map[string]string{"zone": "zone of leader"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := tenuretest.NewDatabase()
				prefers := func(c *tenure.ElectionConfig) { c.Prefers = test.prefers }
				_, leader := ranked(t, db, "leader", test.leader, prefers)
				first := leader.Term()
				_, other := ranked(t, db, "other", test.other, prefers)
				leadsAfter(t, "the other node leads", 20*takenOver, other, test.moves)
				want(t, "the first term is valid", first.Valid(), !test.moves)
			})
		})
	}
}

// A node whose session ends again and again, before the wait is over, never asks.
func TestNodeWithShortSessionsNeverTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		ranked(t, db, "low", "0")
		node, high := ranked(t, db, "high", "1")
		own := tenure.NamedRole("own")
		e, err := node.Election(own)
		wantError(t, "Election", err, nil)
		lead(t, e)
		for range 30 {
			leadsAfter(t, "high leads", takeOverAfter-5*time.Second, high, false)
			db.Revoke(own)
			for !e.IsLeader() {
				time.Sleep(100 * time.Millisecond)
			}
		}
		leadsAfter(t, "high leads with a session that lasts", takenOver, high, true)
	})
}

// Each term that was taken over and ended soon doubles the wait, up to 12 times
// TakeOverAfter. A term that lasts resets it.
func TestFailingWorkDoublesWaitToTakeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		ranked(t, db, "low", "0")
		node := open(t, db, func(c *tenure.Config) { c.Description.Labels = map[string]string{"tenure.priority": "1"} })
		defer closeNode(t, node)
		high, _ := elect(t, node, tenure.ElectionConfig{TakeOverAfter: takeOverAfter, WorkRetry: retry.FixedInterval{Interval: time.Second}})
		lasts := make(chan time.Duration)
		began := make(chan time.Time)
		go func() {
			wantError(t, "Run", high.Run(t.Context(), func(ctx context.Context, _ *tenure.Term) error {
				began <- time.Now()
				select {
				case d := <-lasts:
					time.Sleep(d)
					return errors.New("the work fails")
				case <-ctx.Done():
					return nil
				}
			}), nil)
		}()
		ended := time.Now()
		next := func(wait, work time.Duration) {
			t.Helper()
			got := (<-began).Sub(ended)
			if got < wait || got > wait+checkInterval+3*time.Second { // the pause after the work, an interval, and the hand-over
				t.Errorf("took over after %v; want about %v", got, wait)
			}
			lasts <- work
			ended = time.Now().Add(work)
		}
		for _, times := range []time.Duration{1, 2, 4, 8, 12, 12} {
			next(times*takeOverAfter, time.Second)
		}
		next(12*takeOverAfter, 12*checkInterval)
		next(takeOverAfter, time.Second)
		next(2*takeOverAfter, time.Second)
	})
}

func TestTwoPreferredNodesDoNotAlternate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		ranked(t, db, "low", "0")
		_, a := ranked(t, db, "a", "1")
		_, b := ranked(t, db, "b", "1")
		time.Sleep(takenOver)
		synctest.Wait()
		leader := a
		if b.IsLeader() {
			leader = b
		}
		first := leader.Term()
		want(t, "a preferred node leads", first != nil, true)
		time.Sleep(time.Hour)
		synctest.Wait()
		want(t, "the term of an hour ago", leader.Term(), first)
	})
}

// A node asks only after it could lead, without interruption, for the whole wait.
func TestIneligibleNodeDoesNotTakeOver(t *testing.T) {
	status := func(t *testing.T, node *tenure.Node, status tenure.NodeStatus) {
		t.Helper()
		wantError(t, "UpdateDescription", node.UpdateDescription(t.Context(), func(d *tenure.Description) { d.Status = status }), nil)
	}
	t.Run("draining", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			db := tenuretest.NewDatabase()
			ranked(t, db, "low", "0")
			calls := &seen{Backend: db}
			node, high := ranked(t, calls, "high", "1")
			time.Sleep(takeOverAfter - time.Second)
			status(t, node, tenure.StatusDraining)
			leadsAfter(t, "leads while it drains", time.Hour, high, false)
			_, requests := calls.take()
			want(t, "requests while it drains", len(requests), 0)
			status(t, node, tenure.StatusActive)
			time.Sleep(takeOverAfter - time.Second)
			status(t, node, tenure.StatusDraining) // shorter than an interval
			status(t, node, tenure.StatusActive)
			leadsAfter(t, "leads although it was draining a moment ago", takeOverAfter-time.Millisecond, high, false)
			leadsAfter(t, "leads after the whole wait", takenOver-takeOverAfter, high, true)
		})
	})
	t.Run("only watching", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			db := tenuretest.NewDatabase()
			ranked(t, db, "low", "0")
			calls := &seen{Backend: db}
			node := open(t, calls, func(c *tenure.Config) {
				c.NoLeader, c.Description.Labels = true, map[string]string{"tenure.priority": "1"}
			})
			defer closeNode(t, node)
			e, _ := elect(t, node, tenure.ElectionConfig{TakeOverAfter: takeOverAfter})
			wantError(t, "Start", e.Start(t.Context()), nil)
			leadsAfter(t, "leads", time.Hour, e, false)
			reads, requests := calls.take()
			want(t, "reads", reads, 0)
			want(t, "requests", len(requests), 0)
		})
	})
	t.Run("after its work failed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			db := tenuretest.NewDatabase()
			_, low := ranked(t, db, "low", "0")
			calls := &seen{Backend: db}
			node := open(t, calls, func(c *tenure.Config) { c.Description.Labels = map[string]string{"tenure.priority": "1"} })
			defer closeNode(t, node)
			high, _ := elect(t, node, tenure.ElectionConfig{TakeOverAfter: takeOverAfter, WorkRetry: retry.FixedInterval{Interval: 10 * time.Minute}})
			failed := make(chan struct{}, 1)
			ended := make(chan error, 1)
			go func() {
				ended <- high.Run(t.Context(), func(context.Context, *tenure.Term) error {
					failed <- struct{}{}
					return errors.New("the work fails")
				})
			}()
			<-failed
			calls.take()
			leadsAfter(t, "low leads", 10*time.Minute-time.Second, low, true)
			reads, requests := calls.take()
			want(t, "reads while the node stays behind", reads, 0)
			want(t, "requests while the node stays behind", len(requests), 0)
			<-failed
			wantError(t, "Shutdown", high.Shutdown(t.Context()), nil)
			wantError(t, "Run", <-ended, nil)
		})
	})
	t.Run("stopped", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			db := tenuretest.NewDatabase()
			ranked(t, db, "low", "0")
			calls := &seen{Backend: db}
			_, high := ranked(t, calls, "high", "1")
			time.Sleep(takeOverAfter - time.Second)
			wantError(t, "Shutdown", high.Shutdown(t.Context()), nil)
			wantError(t, "Start", high.Start(t.Context()), nil)
			leadsAfter(t, "leads although it was stopped a moment ago", takeOverAfter-time.Millisecond, high, false)
			wantError(t, "Shutdown", high.Shutdown(t.Context()), nil)
			calls.take()
			time.Sleep(time.Hour)
			reads, _ := calls.take()
			want(t, "reads while it is stopped", reads, 0)
		})
	})
}

// A node takes over one role of a group at a time, the one whose leader is preferred
// least, and none for which it has no room.
func TestTakeOverKeepsLimitOfGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		slots := func(name, priority string, on tenure.Backend) []*tenure.Election {
			node := open(t, on, func(c *tenure.Config) {
				c.Name, c.Description.Labels = name, map[string]string{"tenure.priority": priority}
			})
			t.Cleanup(func() { closeNode(t, node) })
			elections := slotElections(t, node, 3, 1, func(c *tenure.ElectionConfig) { c.TakeOverAfter = takeOverAfter })
			startAll(t, elections)
			return elections
		}
		two, one, three := slots("two", "2", db), slots("one", "1", db), slots("three", "3", db)
		lowest := led(one)
		want(t, "the nodes lead", led(two)+lowest+led(three) != "", true)
		calls := &seen{Backend: db}
		best := slots("best", "4", calls)
		time.Sleep(takenOver)
		want(t, "best leads the slot of one", led(best), lowest)
		want(t, "one leads", led(one), "")
		time.Sleep(20 * takenOver)
		want(t, "best leads", led(best), lowest)
		want(t, "two and three lead", len(strings.Fields(led(two)+led(three))), 2)
		_, requests := calls.take()
		want(t, "requests", len(requests), 1)
	})
}

// The roles of a group share the wait: a node whose work fails does not try role after
// role.
func TestFailingWorkDelaysTakeOverOfGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		for _, name := range []string{"a", "b", "c"} {
			node := open(t, db, func(c *tenure.Config) { c.Name = name })
			t.Cleanup(func() { closeNode(t, node) })
			startAll(t, slotElections(t, node, 3, 1))
		}
		high := open(t, db, func(c *tenure.Config) { c.Description.Labels = map[string]string{"tenure.priority": "1"} })
		defer closeNode(t, high)
		began := make(chan time.Time, 10)
		begun := time.Now()
		for _, e := range slotElections(t, high, 3, 1, func(c *tenure.ElectionConfig) {
			c.TakeOverAfter, c.WorkRetry = takeOverAfter, retry.FixedInterval{Interval: time.Second}
		}) {
			go func() {
				wantError(t, "Run", e.Run(t.Context(), func(context.Context, *tenure.Term) error {
					began <- time.Now()
					return errors.New("the work fails")
				}), nil)
			}()
		}
		for _, wait := range []time.Duration{1, 2, 4, 8, 12} {
			at := <-began
			if got := at.Sub(begun); got < wait*takeOverAfter || got > wait*takeOverAfter+checkInterval+3*time.Second {
				t.Errorf("took over after %v; want about %v", got, wait*takeOverAfter)
			}
			begun = at
		}
	})
}

func TestPreferredMembersMeetRequirements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := open(t, newRegistry())
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{
			Requires: map[string]string{"disk": "ssd"}, RequiresNodeRole: "scheduler", Prefers: map[string]string{"zone": "a"},
		})
		member := func(name string, role string, labels ...string) tenure.Member {
			m := tenure.Member{NodeInfo: tenure.NodeInfo{Name: name}, Description: tenure.Description{Roles: []string{role}, Labels: map[string]string{}}}
			for _, label := range labels {
				key, value, _ := strings.Cut(label, "=")
				m.Labels[key] = value
			}
			return m
		}
		for wanted, members := range map[string][]tenure.Member{
			"": {member("x", "worker", "disk=ssd", "tenure.priority=9"), member("y", "scheduler", "disk=hdd")},
			"b": {
				member("a", "scheduler", "disk=ssd"), member("b", "scheduler", "disk=ssd", "zone=a"),
				member("c", "scheduler", "disk=hdd", "tenure.priority=3"),
			},
			"a c": {
				member("a", "scheduler", "disk=ssd", "tenure.priority=1"), member("b", "scheduler", "disk=ssd", "zone=a"),
				member("c", "scheduler", "disk=ssd", "tenure.priority=1"),
			},
		} {
			var names []string
			for _, m := range e.PreferredMembers(members) {
				names = append(names, m.Name)
			}
			want(t, "preferred", strings.Join(names, " "), wanted)
		}
	})
}
