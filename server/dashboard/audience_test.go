package dashboard

import (
	"context"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// Without a viewer the dashboard reads nothing. The first request after that gets the
// present state, and a stream keeps the dashboard reading.
func TestDashboardWithoutViewersReadsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	w.node("api-1", "scheduler")
	w.led("scheduler", "api-1")
	rests := func() bool {
		w.board.audience.mu.Lock()
		defer w.board.audience.mu.Unlock()
		return w.board.audience.rests
	}
	leave := func() {
		w.board.audience.mu.Lock()
		defer w.board.audience.mu.Unlock()
		w.board.audience.last = time.Now().Add(-attention) // Set by hand: the last viewer left half a minute ago
	}
	leave()
	w.await("the watch rests", rests)
	before := w.statements.Load()
	second, _ := w.node("api-2", "other")
	w.AwaitLeader("other", second.ID())
	ended := time.After(allInterval + time.Second)
	<-ended
	if n := w.statements.Load() - before; n > 0 {
		t.Errorf("%d statements without a viewer; want none", n)
	}
	roles := get[list[roleRecord]](w, "/api/roles?search=other").Rows
	if len(roles) != 1 || roles[0].State != led || roles[0].NodeName != "api-2" {
		t.Errorf("the first request gets %+v; want the role that api-2 acquired", roles)
	}
	next, _ := w.follow("")
	for next().kind != kindNow {
	}
	leave()
	before = w.statements.Load()
	w.await("a stream keeps the watch reading", func() bool { return w.statements.Load() > before+2 })
	if rests() {
		t.Error("the watch rests while a stream is open")
	}
}

// While processors cannot be read because of a lock, alerts are: each read has its own
// limit.
func TestBlockedProcessorsDoNotHideAlerts(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	w := newWorld(t, Config{Alerts: func(ctx context.Context) ([]Alert, error) {
		return []Alert{{Name: "down", State: "firing", Severity: "critical"}}, ctx.Err()
	}})
	w.node("api-1", "scheduler")
	w.led("scheduler", "api-1")
	transaction, err := w.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = transaction.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := transaction.Exec(t.Context(), pgtest.SQL(w.nodes, `LOCK TABLE {processors}`)); err != nil {
		t.Fatal(err)
	}
	var now nowRecord
	w.await("processors are not read", func() bool {
		now = get[struct{ Now nowRecord }](w, "/api/now").Now
		return now.WorkUnreadSince != nil
	})
	if now.AlertsUnreadSince != nil {
		t.Errorf("alerts are not read since %v; only processors cannot be read", now.AlertsUnreadSince)
	}
}
