package tenure_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
)

// Work calls its own session, and the statement never returns. When trust ends, the call
// returns an error. Without it the work would wait for the session, and the session, which
// closes after the work, for the work.
func TestWorkIsAnsweredWhenSessionEndsDuringItsCall(t *testing.T) {
	for name, call := range map[string]func(*tenure.Election) error{
		"Refresh": func(e *tenure.Election) error { return e.Refresh(context.Background()) },
		"Members": func(e *tenure.Election) error {
			_, err := e.Node().Members(context.Background())
			return err
		},
		"UpdateDescription": func(e *tenure.Election) error { return e.Node().UpdateDescription(context.Background(), version("v1")) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newRegistry()
				node := open(t, db)
				defer closeNode(t, node)
				first := db.last()
				unanswered := func() error { <-first.dead; return errGone }
				hang := func() {
					first.set(func(c *conn) { c.onHeartbeat = unanswered })
					db.change(func(r *registry) {
						r.onDescribe, r.onMembers = unanswered, func() { _ = unanswered() }
					})
				}
				e, _ := elect(t, node, tenure.ElectionConfig{})
				began := time.Now()
				returned, ended := make(chan error, 1), make(chan error, 1)
				go func() {
					ended <- e.Run(t.Context(), func(ctx context.Context, _ *tenure.Term) error {
						hang()
						returned <- call(e)
						<-ctx.Done()
						return nil
					})
				}()
				select {
				case err := <-returned:
					wantError(t, name, err, tenure.ErrTrustExpired)
					want(t, "answered within a lease", time.Since(began) <= 10*time.Second, true)
				case <-time.After(time.Hour):
					t.Fatalf("the work waits for %s, and the session for the work", name)
				}
				synctest.Wait()
				want(t, "the connection is closed", first.wasAborted(), true)
				first.kill() // ends what still waits
				db.change(func(r *registry) { r.onDescribe, r.onMembers = nil, nil })
				stop(t, e)
				wantError(t, "Run", <-ended, nil)
			})
		})
	}
}

// lateTrust is a session. While waits is set, it extends trust only after all other
// goroutines of the test have blocked.
type lateTrust struct {
	tenure.Session
	clock clocks.Clock
	waits *atomic.Bool
}

func (p *lateTrust) TrustLimit() clocks.Instant {
	if p.waits.CompareAndSwap(true, false) {
		synctest.Wait()
	}
	return p.clock.Now().Add(time.Hour)
}

type lateTrustBackend struct {
	*database
	waits atomic.Bool
}

func (b *lateTrustBackend) Open(ctx context.Context, options tenure.SessionOptions) (tenure.Session, error) {
	session, err := b.database.Open(ctx, options)
	return &lateTrust{session, options.Clock, &b.waits}, err
}

// Refresh returns when trust has been extended, not before.
func TestRefreshReturnsAfterTrustIsExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &lateTrustBackend{database: newDatabase()}
		node := open(t, backend)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		time.Sleep(2 * time.Second)
		backend.waits.Store(true)
		wantError(t, "Refresh", e.Refresh(t.Context()), nil)
		want(t, "remaining", term.Remaining(), 9*time.Second)
	})
}
