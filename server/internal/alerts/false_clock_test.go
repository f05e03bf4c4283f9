package alerts

import (
	"net/http"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// clocked returns a world on a server whose clock is a year ahead.
func clocked(t *testing.T) (*world, *pgtest.Clock) {
	t.Helper()
	server, clock := pgtest.StartWithClock(t, pgtest.Options{})
	clock.Set(t, 365*24*time.Hour)
	return newWorldOn(t, server), clock
}

// TestAttentionOfFalseClockEnds: a silence and an acknowledgment that were made under a clock that
// was ahead are over when the clock is right.
func TestAttentionOfFalseClockEnds(t *testing.T) {
	t.Parallel()
	w, clock := clocked(t)
	admin := NewAdmin(w.backend, w.pool)
	silence, err := admin.Silence(t.Context(), Silence{Matchers: map[string]string{"severity": "critical"}, CreatedBy: "ann"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	other := vacant
	other.Name, other.Severity = "other", "warning"
	w.start("a", Config{Rules: []Rule{vacant, other}})
	w.wantReceived("other firing")
	if n, err := admin.Acknowledge(t.Context(), "other", nil, "bob", time.Hour); n != 1 || err != nil {
		t.Fatalf("%d alerts are acknowledged, %v", n, err)
	}
	clock.Set(t, 0)
	w.await("the silenced alert, and the acknowledged one again", func() bool { received, _ := w.receiver.all(); return len(received) == 3 })
	if list, err := admin.Silences(t.Context(), false); err != nil || len(list) > 0 {
		t.Errorf("silences that last: %+v, %v", list, err)
	}
	if err := admin.Unsilence(t.Context(), silence.ID, "ann"); err == nil {
		t.Error("a silence that was over was ended")
	}
}

// TestPauseOfFalseClockEnds: a notification that was refused under a clock that was ahead is sent
// when the clock is right.
func TestPauseOfFalseClockEnds(t *testing.T) {
	t.Parallel()
	w, clock := clocked(t)
	w.receiver.answer(http.StatusInternalServerError)
	w.start("a", Config{Rules: []Rule{vacant}})
	w.await("a pause before the next attempt", func() bool {
		return value[bool](w, `SELECT EXISTS (SELECT FROM {alert_notifications} WHERE attempts > 0 AND last_error <> '')`)
	})
	clock.Set(t, 0)
	w.receiver.answer(http.StatusOK)
	w.wantReceived("no_scheduler_leader firing")
}
