package tenure_test

import (
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/tenuretest"
)

// partial opens a node that prefers itself, whatever the others prefer, and counts its
// terms.
func partial(t *testing.T, db tenure.Backend, name string, after time.Duration, terms *atomic.Int64) (*tenure.Node, *tenure.Election) {
	t.Helper()
	node := open(t, db, func(c *tenure.Config) {
		c.Name, c.Description.Labels = name, map[string]string{"zone": name}
	})
	t.Cleanup(func() { closeNode(t, node) })
	e, _ := elect(t, node, tenure.ElectionConfig{TakeOverAfter: after, Prefers: map[string]string{"zone": name}})
	e.OnAcquired(func(*tenure.Term) { terms.Add(1) })
	wantError(t, "Start", e.Start(t.Context()), nil)
	synctest.Wait()
	return node, e
}

// Nodes that disagree about who is preferred settle. Two take over at most once each. More
// can form a circle, and wait twice as long each time.
func TestNodesThatPreferThemselvesSettle(t *testing.T) {
	for _, nodes := range []int{2, 3, 4} {
		for _, after := range []time.Duration{time.Second, takeOverAfter, 10 * time.Minute} {
			t.Run(fmt.Sprintf("%d nodes, %v", nodes, after), func(t *testing.T) {
				if testing.Short() && (nodes > 2 || after != takeOverAfter) {
					t.Skip("long: make deep runs it")
				}
				synctest.Test(t, func(t *testing.T) {
					db := tenuretest.NewDatabase()
					var terms atomic.Int64
					elections := make([]*tenure.Election, nodes)
					for i := range elections {
						_, elections[i] = partial(t, db, fmt.Sprintf("node-%d", i), after, &terms)
					}
					time.Sleep(24 * time.Hour)
					synctest.Wait()
					settled := terms.Load()
					doublings := int64(math.Ceil(math.Log2(float64(24*time.Hour) / float64(max(after, checkInterval)))))
					most, later := int64(nodes)*(doublings+1), int64(nodes)
					if nodes == 2 {
						most, later = 3, 0
					}
					if settled < 2 || settled > most {
						t.Errorf("%d terms in a day; want 2 to %d", settled, most)
					}
					time.Sleep(24 * time.Hour)
					synctest.Wait()
					if more := terms.Load() - settled; more > later {
						t.Errorf("%d terms on the second day; want at most %d", more, later)
					}
				})
			})
		}
	}
}

// A node that leaves the role to another takes over again when the labels of one of them
// have changed.
func TestSettledNodeTakesOverAfterLabelsChange(t *testing.T) {
	change := func(t *testing.T, node *tenure.Node, priority string) {
		t.Helper()
		wantError(t, "UpdateDescription", node.UpdateDescription(t.Context(), func(d *tenure.Description) {
			d.Labels = map[string]string{"tenure.priority": priority}
		}), nil)
	}
	for _, changed := range []string{"its own", "the leader's"} {
		t.Run(changed, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := tenuretest.NewDatabase()
				var terms atomic.Int64
				first, a := partial(t, db, "a", takeOverAfter, &terms)
				second, b := partial(t, db, "b", takeOverAfter, &terms)
				leadsAfter(t, "b leads after it took over", time.Hour, b, true)
				if changed == "its own" {
					change(t, first, "1")
				} else {
					change(t, second, "-1")
				}
				leadsAfter(t, "a leads after a change of labels", 2*takenOver, a, true)
			})
		})
	}
}
