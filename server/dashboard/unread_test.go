package dashboard

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// TestUnreadPartsHaveAge: processors and schedules, or alerts, that cannot be read while the
// rest can are shown with their age, and the health does not say that all is well.
func TestUnreadPartsHaveAge(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	var broken atomic.Bool
	w := newWorld(t, Config{Alerts: func(context.Context) ([]Alert, error) {
		if broken.Load() {
			return nil, errors.New("it does not answer")
		}
		return []Alert{{Name: "down", State: "inactive"}}, nil
	}}, func(w *world) {
		w.exec(`INSERT INTO {processors} (name, kind, role) VALUES ('mails', 'outbox', 'mails')`)
	})
	w.node("api-1", "scheduler")
	w.node("api-2", "other")
	w.led("scheduler", "api-1")
	w.led("other", "api-2")
	var now map[string]any
	shows := func(level, sentence string, unread ...string) {
		t.Helper()
		w.await("the health is "+level+": "+sentence, func() bool {
			now = get[struct{ Now map[string]any }](w, "/api/now").Now
			health, _ := now["health"].(map[string]any)
			text, _ := health["sentence"].(string)
			return health["level"] == level && strings.Contains(text, sentence)
		})
		for _, part := range []string{"work_unread_since", "alerts_unread_since"} {
			want := len(unread) > 0 && unread[0] == part
			if got := now[part] != nil; got != want {
				t.Errorf("%s is %v while %q", part, now[part], unread)
			}
		}
	}
	shows(good, "All roles have a leader")
	broken.Store(true)
	shows(warning, "The alerts cannot be read", "alerts_unread_since")
	broken.Store(false)
	shows(good, "All roles have a leader")
	w.exec(`ALTER TABLE {processors} RENAME TO elsewhere`)
	shows(warning, "Processors and schedules cannot be read", "work_unread_since")
	if work := w.board.snapshot.workNow(); len(work.Processors) != 1 {
		t.Errorf("what was known is not shown: %+v", work)
	}
	w.exec(`ALTER TABLE ` + w.schema + `.elsewhere RENAME TO tenure_processors`)
	shows(good, "All roles have a leader")
}

// TestAlertsThatDoNotReturnStopNoReads: a function for alerts that blocks, panics or
// ends its goroutine, stops no reads of the rest, and the alerts are not shown as known.
func TestAlertsThatDoNotReturnStopNoReads(t *testing.T) {
	t.Parallel()
	for name, misbehave := range map[string]func(release <-chan struct{}){
		"blocks":             func(release <-chan struct{}) { <-release },
		"ends its goroutine": func(<-chan struct{}) { runtime.Goexit() },
		"panics":             func(<-chan struct{}) { panic("no alerts") },
	} {
		t.Run(name, func(t *testing.T) {
			if name == "blocks" {
				pgtest.Long(t)
			}
			t.Parallel()
			var calls atomic.Int64
			release := make(chan struct{})
			w := newWorld(t, Config{Alerts: func(context.Context) ([]Alert, error) {
				if calls.Add(1) > 1 {
					misbehave(release)
				}
				return []Alert{{Name: "down", State: "inactive"}}, nil
			}})
			t.Cleanup(func() { close(release) }) // before the dashboard is closed
			w.await("it misbehaves", func() bool { return calls.Load() > 1 })
			w.node("api-1", "scheduler")
			w.led("scheduler", "api-1")
			if now := w.board.snapshot.now(); now.AlertsUnreadSince == nil || !strings.Contains(now.Health.Sentence, "The alerts cannot be read") {
				t.Errorf("the alerts are shown as known: %+v", now)
			}
		})
	}
}
