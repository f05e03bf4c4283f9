package alerts

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/exactly-one/tenure/cmd/tenure/internal/notifiers"
)

// notes writes notifications by hand: of a rule of that name to the notifier
// "hook", which began or ended, due after a time.
func (w *world) note(rule, severity string, ended bool, due time.Duration) {
	w.Helper()
	w.exec(`
INSERT INTO {alert_notifications} (
    rule, fingerprint, notifier, address, severity, labels, annotations, value, started_at, ended_at, term, next_attempt_at
)
VALUES (
    $1, 'f', 'hook', 'hook', $2, '{}', '{}', 0, '2026-11-21', CASE WHEN $3 THEN now() END, 1,
    clock_timestamp() + $4::bigint * interval '1 millisecond'
)`, rule, severity, ended, due.Milliseconds())
}

// senderOf is a sender by a notifier, of a leader that does nothing else.
func (w *world) sender(n *notifiers.Notifier) *sender {
	return &sender{
		leading:  &leading{tables: w.tables, engine: &Engine{}, news: make(chan struct{})},
		notifier: n, limiter: newLimiter(n.PerMinute()), log: slog.New(slog.DiscardHandler),
	}
}

// TestWaitBehind: while the beginning of an alert waits to be tried again, its
// end, which waits behind it, keeps nobody busy.
func TestWaitBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.note("down", "critical", false, 30*time.Second)
	w.note("down", "critical", true, 0)
	wait, err := w.sender(w.set["hook"]).pass(t.Context(), nil)
	if err != nil || wait < 20*time.Second || wait > 30*time.Second {
		t.Errorf("the sender looks again in %v (%v)", wait, err)
	}
}

// TestSevereFirst: in a storm what is critical is sent first, and what was tried
// before goes in messages of its own.
func TestSevereFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.note("again", "critical", false, 0)
	w.exec(`UPDATE {alert_notifications} SET attempts = 1`)
	for rule, severity := range map[string]string{"a": "info", "b": "critical", "c": "error", "d": "warning", "e": "unheard"} {
		w.note(rule, severity, false, 0)
	}
	messages, err := w.tables.readDue(t.Context(), "hook", 3)
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, m := range messages {
		var names []string
		for _, a := range m.alerts {
			names = append(names, a.Name)
		}
		got = append(got, names)
	}
	want := [][]string{{"again"}, {"b", "c", "d"}, {"a", "e"}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("the messages are %v; want %v", got, want)
	}
}
