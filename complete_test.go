package tenure_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
)

// Complete ends a term for completed work and stops the election, however the term began.
func TestCompleteStopsTheElection(t *testing.T) {
	for name, begin := range map[string]func(*tenure.Election, context.Context) (*tenure.Term, error){
		"Campaign": (*tenure.Election).Campaign, "TryAcquire": (*tenure.Election).TryAcquire,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newDatabase()
				node := open(t, db)
				defer closeNode(t, node)
				e, _ := elect(t, node, tenure.ElectionConfig{})
				for range 2 {
					term, err := begin(e, t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if err := term.Complete(t.Context(), time.Hour); err != nil {
						t.Error(err)
					}
					want(t, "state", e.State(), tenure.Stopped)
				}
				want(t, "completed", db.last().count("release r completed"), 2)

				term, err := begin(e, t.Context())
				if err != nil {
					t.Fatal(err)
				}
				session := db.last()
				session.kill()
				<-term.Context().Done()
				if err := term.Complete(t.Context(), 0); err != nil {
					t.Errorf("after a loss: %v", err)
				}
				want(t, "completed, after a loss", session.count("release r completed"), 2)
			})
		})
	}
}
