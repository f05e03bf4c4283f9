package alerts

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/server/internal/notifiers"
)

// note writes a notification of a rule to the notifier "hook", which began or ended,
// due after a time.
//
// Set by hand: tests of the sender choose what is due, and no rules are evaluated.
func (w *world) note(rule, severity string, ended bool, due time.Duration) {
	w.Helper()
	w.exec(`
INSERT INTO {alert_notifications} (
    rule, fingerprint, notifier, address, severity, labels, annotations, value, since, started_at, ended_at, term, next_attempt_at
)
VALUES (
    $1, 'f' || (SELECT count(*) FROM {alert_notifications} WHERE rule = $1 AND $1 LIKE 'many%'), 'hook', 'hook', $2, '{}', '{}', 0, '2026-11-20', '2026-11-21', CASE WHEN $3 THEN now() END, 1,
    clock_timestamp() + $4::bigint * interval '1 millisecond'
)`, rule, severity, ended, due.Milliseconds())
}

// senderOf is a sender by a notifier, of a leader that does nothing else.
func (w *world) sender(n *notifiers.Notifier) *sender {
	return &sender{
		termWork: &termWork{tables: w.tables, engine: &Engine{}, outboxFilled: make(chan struct{})},
		notifier: n, limiter: newLimiter(n.PerMinute()), log: slog.New(slog.DiscardHandler),
	}
}

// TestEndBehindRetriedBeginningIsNotPolled: while the beginning of an alert waits to be tried again, its
// end, which waits behind it, keeps no sender busy.
func TestEndBehindRetriedBeginningIsNotPolled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.note("down", "critical", false, 30*time.Second)
	w.note("down", "critical", true, 0)
	wait, err := w.sender(w.set["hook"]).pass(t.Context(), nil)
	if err != nil || wait < 20*time.Second || wait > 30*time.Second {
		t.Errorf("the sender looks again in %v (%v)", wait, err)
	}
}

// TestCriticalNotificationsAreSentFirst: in a storm, critical notifications are sent first.
// Each message has alerts of one rule, in a bounded number, and separates those that were
// tried before, those that have ended, and those of another incident.
func TestCriticalNotificationsAreSentFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.note("many", "critical", false, 0)
	w.exec(`UPDATE {alert_notifications} SET attempts = 1`)
	for range 4 {
		w.note("many", "critical", false, 0)
	}
	w.exec(`UPDATE {alert_notifications} SET ended_at = now() WHERE number = 2`)
	w.exec(`UPDATE {alert_notifications} SET group_key = 'crash', incident = 'api-1 crashed.' WHERE number = 3`)
	for _, one := range [][2]string{{"a", "info"}, {"b", "critical"}, {"c", "error"}, {"d", "warning"}, {"e", "unheard"}} {
		w.note(one[0], one[1], false, 0)
	}
	w.note("many", "critical", false, 0)
	messages, err := w.tables.readDue(t.Context(), "hook", 2)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range messages {
		text := m.incident
		for _, a := range m.alerts {
			text += " " + a.Name
			if !a.Firing() {
				text += " over"
			}
		}
		got = append(got, text)
	}
	want := []string{" many", " many over", "api-1 crashed. many", " many many", " b", " many", " c", " d", " a", " e"}
	if !slices.Equal(got, want) {
		t.Errorf("the messages are %q; want %q", got, want)
	}
}

// TestUnsentNotificationsAreCondensed: an alert begins and ends repeatedly while nothing can be sent. Only
// the notifications that people need are kept: the end of what they heard of, and
// the newest.
func TestUnsentNotificationsAreCondensed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	began := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	for i := range 5 {
		w.note("flaps", "warning", false, 0)
		if i < 4 {
			w.note("flaps", "warning", true, 0)
		}
		w.exec(`UPDATE {alert_notifications} SET started_at = $1 WHERE started_at = '2026-11-21'`, began.Add(time.Duration(i+1)*time.Minute))
	}
	w.note("once", "warning", false, 0)
	w.note("once", "warning", true, 0)
	// The first beginning was sent, and the beginning of the second was tried.
	w.exec(`UPDATE {alert_notifications} SET status = 'sent', attempts = 1, settled_at = now() WHERE rule = 'flaps' AND number = 1`)
	w.exec(`UPDATE {alert_notifications} SET attempts = 1 WHERE rule = 'flaps' AND number = 3`)
	w.exec(`UPDATE {alert_notifications} SET notifier = 'hook'`)
	for i, want := range []int64{4, 0} {
		if dropped, err := w.tables.tidy(t.Context(), w.set, "n"); err != nil || dropped != want {
			t.Errorf("time %d: %d were left out (%v); want %d", i, dropped, err, want)
		}
	}
	rows, _ := w.pool.Query(t.Context(), pgtest.SQL(w.backend, `SELECT number FROM {alert_notifications} WHERE status = 'pending' ORDER BY number`))
	left, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if want := []int64{2, 3, 4, 9, 10, 11}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left are %v (%v); want %v", left, err, want)
	}
}

// TestOutdatedMessageIsRebuilt: if a part of a message must not be sent any longer, the
// whole message is built again without delay.
func TestOutdatedMessageIsRebuilt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.note("many", "warning", false, 0)
	w.note("many", "warning", false, 0)
	messages, err := w.tables.readDue(t.Context(), "hook", 10)
	if err != nil || len(messages) != 1 {
		t.Fatalf("%v, %v", messages, err)
	}
	election, err := w.idle("n").Election(tenure.NamedRole("other"))
	if err != nil {
		t.Fatal(err)
	}
	term, err := election.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.exec(`DELETE FROM {alert_notifications} WHERE fingerprint = 'f0'`)
	if claimed, err := w.tables.claim(t.Context(), term, messages[0]); claimed || err != nil {
		t.Errorf("claimed is %v (%v)", claimed, err)
	}
	messages, err = w.tables.readDue(t.Context(), "hook", 10)
	if err != nil || len(messages) != 1 || len(messages[0].alerts) != 1 {
		t.Fatalf("%v, %v", messages, err)
	}
	if claimed, err := w.tables.claim(t.Context(), term, messages[0]); !claimed || err != nil {
		t.Errorf("claimed is %v (%v)", claimed, err)
	}
	if err := term.Resign(t.Context()); err != nil {
		t.Error(err)
	}
}
