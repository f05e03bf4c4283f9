package tenure_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/retry"
)

// A role that is held or cannot be taken, for example because the server's lock table
// is full, is tried again at every check interval, or when the retry strategy says, even
// if every notification is lost (Invariant 7).
func TestRoleIsTriedAtCheckIntervalsOrByStrategy(t *testing.T) {
	minutely := retry.FixedInterval{Interval: time.Minute}
	for name, c := range map[string]struct {
		node, election retry.Strategy
		interval       time.Duration // between attempts
	}{
		"no strategy":             {nil, nil, 5 * time.Second},
		"strategy of the node":    {minutely, nil, time.Minute},
		"strategy of an election": {retry.FixedInterval{Interval: time.Second}, minutely, time.Minute},
	} {
		for what, result := range map[string]tenure.AcquireResult{
			"held":   {Outcome: tenure.OutcomeHeld},
			"failed": {Outcome: tenure.OutcomeFailed, Err: errors.New("out of shared memory")},
		} {
			t.Run(fmt.Sprintf("%s/%s", name, what), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var (
						mu      sync.Mutex
						changed bool
						tried   []time.Time
					)
					db := newDatabase()
					db.silent = true
					db.prepare = func(c *conn) {
						c.onAcquire = func(tenure.Role) *tenure.AcquireResult {
							mu.Lock()
							defer mu.Unlock()
							if tried = append(tried, time.Now()); changed {
								return nil
							}
							return &result
						}
					}
					node := open(t, db, func(cfg *tenure.Config) { cfg.Retry = c.node })
					defer closeNode(t, node)
					e, _ := elect(t, node, tenure.ElectionConfig{Retry: c.election})
					if err := e.Start(t.Context()); err != nil {
						t.Fatal(err)
					}
					time.Sleep(10*time.Minute + 7*time.Second)
					mu.Lock()
					changed = true
					last, attempts := tried[len(tried)-1], len(tried)
					mu.Unlock()
					lead(t, e)
					if took := time.Since(last); took != c.interval {
						t.Errorf("invariant 7: led %v after the last attempt; want %v", took, c.interval)
					}
					if most := int(10*time.Minute/c.interval) + 10; attempts > most {
						t.Errorf("%d attempts in 10 minutes; want at most %d", attempts, most)
					}
				})
			})
		}
	}
}
