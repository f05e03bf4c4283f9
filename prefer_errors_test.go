package tenure_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/tenuretest"
)

// A backend that cannot record requests is asked once.
func TestTakeOverEndsWithoutSupport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		ranked(t, db, "low", "0")
		calls := &seen{Backend: db, onRequest: func() error { return tenure.ErrUnsupported }}
		_, high := ranked(t, calls, "high", "1")
		leadsAfter(t, "leads", time.Hour, high, false)
		reads, requests := calls.take()
		want(t, "requests", len(requests), 1)
		want(t, "the leaders were not read after the request", reads < 10, true)
	})
}

// unlabeled is a backend that does not have the labels of leaders.
type unlabeled struct{ tenure.Backend }

func (unlabeled) LeadersHaveLabels() bool { return false }

func TestTakeOverRequiresValidSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		for _, wait := range []time.Duration{-1, 25 * time.Hour} {
			_, err := node.ElectionWith(tenure.NamedRole("r"), tenure.ElectionConfig{TakeOverAfter: wait})
			wantError(t, wait.String(), err, tenure.ErrInvalidConfig)
		}
		err := node.UpdateDescription(t.Context(), func(d *tenure.Description) { d.Labels = map[string]string{"tenure.priority": "high"} })
		wantError(t, "a priority that is no number", err, tenure.ErrInvalidConfig)

		other := open(t, unlabeled{db})
		defer closeNode(t, other)
		_, err = other.ElectionWith(tenure.NamedRole("r"), tenure.ElectionConfig{TakeOverAfter: takeOverAfter})
		wantError(t, "without labels", err, tenure.ErrUnsupported)
	})
}

// A read of the leaders that gets no answer ends after a check interval, and does not
// delay Close. A refused request is followed by the whole wait.
func TestTakeOverContinuesAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		ranked(t, db, "low", "0")
		silent := true
		calls := &seen{Backend: db}
		calls.onLeaders = func(ctx context.Context) error {
			if !silent {
				return nil
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}
		calls.onRequest = func() error { return tenure.ErrNotActive }
		node, high := ranked(t, calls, "high", "1")
		leadsAfter(t, "leads", time.Minute, high, false)
		reads, _ := calls.take()
		want(t, "reads while there is no answer", reads >= 5 && reads <= 8, true)
		calls.mu.Lock()
		silent = false
		calls.mu.Unlock()
		time.Sleep(10*takeOverAfter + takenOver)
		_, requests := calls.take()
		want(t, "requests in eleven times the wait", len(requests) >= 9 && len(requests) <= 11, true)
		calls.mu.Lock()
		silent = true
		calls.mu.Unlock()
		time.Sleep(checkInterval)
		begun := time.Now()
		closeNode(t, node)
		want(t, "Close was fast", time.Since(begun) < time.Second, true)
	})
}
