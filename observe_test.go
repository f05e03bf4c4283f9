package tenure_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
)

func TestCallbacksRunInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		e, rec := elect(t, node, tenure.ElectionConfig{})
		var order []string
		e.OnAcquired(func(*tenure.Term) { order = append(order, "first") })
		e.OnAcquired(func(*tenure.Term) { panic("boom") })
		e.OnAcquired(func(term *tenure.Term) {
			order = append(order, "second")
			time.Sleep(time.Hour) // delays later callbacks, no heartbeat
			want(t, "valid", term.Valid(), true)
		})
		e.OnError(func(error) { order = append(order, "error"); panic("again") })
		e.OnReleased(func(*tenure.Term) { order = append(order, "released") })
		e.OnStopped(func() { order = append(order, "stopped") })
		lead(t, e)
		time.Sleep(2 * time.Hour)
		_ = e.Shutdown(t.Context())
		closeNode(t, node)
		want(t, "calls", len(order), 5)
		for i, name := range []string{"first", "second", "error", "released", "stopped"} {
			want(t, "call", order[i], name)
		}
		if err := rec.errorOf(tenure.EventError); err == nil {
			t.Error("the panic was not reported")
		}
	})
}

func TestObserveSendsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		ctx, cancel := context.WithCancel(t.Context())
		changes := node.Observe(ctx, e.Role())
		term := lead(t, e)
		change := <-changes
		want(t, "leader", change.Leader.NodeID, node.ID())
		want(t, "previous", change.Previous == nil, true)
		_ = e.Shutdown(t.Context())
		change = <-changes
		want(t, "vacant", change.Leader == nil, true)
		want(t, "previous", change.Previous.Term, term.Number())
		cancel()
		_, open := <-changes
		want(t, "open", open, false)
		apart := tenure.Observe(t.Context(), db, tenure.Config{Logger: quiet})
		lead(t, e)
		begun := time.Now()
		change = <-apart // without a listener, by looking
		want(t, "leader", change.Leader.NodeID, node.ID())
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("seen after %v", took)
		}
		rest := node.Observe(t.Context())
		closeNode(t, node)
		_, open = <-rest
		want(t, "open after Close", open, false)
	})
}
