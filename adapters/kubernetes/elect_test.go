package kubernetes_test

import (
	"errors"
	"testing"

	"github.com/exactly-one/tenure"
)

// TestElectorsNeverLeadTogether: whichever way a leader is replaced, OnStartedLeading
// has returned before the next call of it, on any node.
func TestElectorsNeverLeadTogether(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(f *fleet, leader *candidate){
		"lost sessions": func(f *fleet, _ *candidate) { f.terminate() },
		"stopped elector": func(_ *fleet, leader *candidate) {
			leader.stop()
		},
		"step-down by an operator": func(f *fleet, _ *candidate) {
			request := tenure.Request{Kind: tenure.RequestStepDown, Role: role, By: "operator"}
			if err := f.Backend.Request(f.Context(), request); err != nil {
				f.Fatal(err)
			}
		},
		"hand-over": func(f *fleet, leader *candidate) {
			target := f.candidates[0].node.ID()
			if leader == f.candidates[0] {
				target = f.candidates[1].node.ID()
			}
			request := tenure.Request{Kind: tenure.RequestHandOver, Role: role, Target: target, By: "operator"}
			f.Await("a target that campaigns", func() bool { // it may have just stepped down
				err := f.Backend.Request(f.Context(), request)
				if err != nil && !errors.Is(err, tenure.ErrNotActive) {
					f.Fatal(err)
				}
				return err == nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 3, (*candidate).elect)
			for range 4 {
				leader := f.leader(0)
				before := f.terms.Load()
				replace(f, leader)
				f.leader(before)
			}
			f.check()
		})
	}
}
