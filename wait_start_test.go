package tenure_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
)

// A wait that precedes the first start lasts until the node leads: the goroutine of Run
// may begin later.
func TestWaitForLeadershipWaitsForTheFirstStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := open(t, newDatabase())
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		ran := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, func() {
			ran <- e.Run(ctx, func(ctx context.Context, _ *tenure.Term) error {
				<-ctx.Done()
				return nil
			})
		})
		term, err := e.WaitForLeadership(t.Context())
		if err != nil || !term.Valid() {
			t.Errorf("WaitForLeadership before Run: %v, %v; want a valid term", term, err)
		}
		cancel()
		if err := <-ran; err != nil {
			t.Errorf("Run: %v", err)
		}
		_, err = e.WaitForLeadership(t.Context())
		wantError(t, "WaitForLeadership after Run", err, tenure.ErrStopped)
	})
}

// A wait for the first start ends with its context, a shutdown, and the node.
func TestWaitForTheFirstStartEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := open(t, newDatabase())
		late := errors.New("too late")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, late)
		defer cancel()
		first, _ := elect(t, node, tenure.ElectionConfig{})
		_, err := first.WaitForLeadership(ctx)
		wantError(t, "WaitForLeadership of a context that ends", err, late)

		waits := func(role string) (*tenure.Election, <-chan error) {
			e, err := node.Election(tenure.NamedRole(role))
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				_, err := e.WaitForLeadership(t.Context())
				done <- err
			}()
			synctest.Wait()
			return e, done
		}
		second, done := waits("second")
		wantError(t, "Shutdown", second.Shutdown(t.Context()), nil)
		wantError(t, "WaitForLeadership of an election that was shut down", <-done, tenure.ErrStopped)
		lead(t, second)

		_, done = waits("third")
		closeNode(t, node)
		wantError(t, "WaitForLeadership of a node that closed", <-done, tenure.ErrStopped)
	})
}
