package alerts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/alerting"
)

// TestSilencedAlertIsSentWhenSilenceEnds: an alert that is silenced fires, is recorded with
// who silenced it, and notifies no one until an operator ends the silence.
func TestSilencedAlertIsSentWhenSilenceEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := NewAdmin(w.backend, w.pool)
	silence, err := admin.Silence(t.Context(), Silence{Matchers: map[string]string{"severity": "critical"}, Comment: "maintenance", CreatedBy: "ann"}, time.Hour)
	if err != nil || silence.ID == 0 || silence.Until.Sub(silence.CreatedAt) < 59*time.Minute {
		t.Fatalf("%+v, %v", silence, err)
	}
	other := vacant
	other.Name, other.Severity = "other", "warning"
	p := w.start("a", Config{Rules: []Rule{vacant, other}})
	w.wantReceived("other firing")
	list, err := alerting.List(t.Context(), w.backend, w.pool)
	if err != nil || list[0].State != Firing || list[0].Alerts[0].SilencedBy != "ann" || !list[0].Alerts[0].SilencedUntil.Equal(silence.Until) ||
		list[0].PendingNotifications != 0 || list[1].Alerts[0].SilencedBy != "" {
		t.Fatalf("the list is %+v, %v", list, err)
	}
	if n := value[int](w, `SELECT count(*) FROM {alert_notifications} WHERE rule = $1 AND status = 'silenced'`, vacant.Name); n != 1 {
		t.Errorf("%d notifications are silenced", n)
	}
	past, err := admin.History(t.Context(), HistoryQuery{Rule: vacant.Name})
	if err != nil || len(past) != 1 || past[0].SilencedBy != "ann" || past[0].Summary != "0 lead" || !past[0].EndedAt.IsZero() {
		t.Errorf("the history is %+v, %v", past, err)
	}
	if err := admin.Unsilence(t.Context(), silence.ID, "bob"); err != nil {
		t.Fatal(err)
	}
	w.wantReceived("other firing", "no_scheduler_leader firing")
	if err := p.engine.Reload([]Rule{}, w.set); err != nil {
		t.Fatal(err)
	}
	w.await("both ends", func() bool { received, _ := w.receiver.all(); return len(received) == 4 })
	past, err = admin.History(t.Context(), HistoryQuery{})
	if err != nil || len(past) != 2 || past[0].EndedAt.IsZero() || past[1].EndedAt.IsZero() {
		t.Errorf("the history is %+v, %v", past, err)
	}
	all, err := admin.Silences(t.Context(), true)
	if err != nil || len(all) != 1 || all[0].EndedBy != "bob" || all[0].EndedAt.IsZero() || all[0].Comment != "maintenance" {
		t.Errorf("the silences are %+v, %v", all, err)
	}
	if err := admin.Unsilence(t.Context(), silence.ID, "bob"); !errors.Is(err, ErrNoSilence) {
		t.Errorf("ended twice: %v", err)
	}
	w.wantChanges(`ann silence all alerts: silence 1 until TIME with {"severity": "critical"}: maintenance`, "bob unsilence all alerts: silence 1")
}

// TestTwoOperatorsEndOneSilence: of those who end a silence at the same moment one learns
// that it did, and is on record.
func TestTwoOperatorsEndOneSilence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := NewAdmin(w.backend, w.pool)
	for range 20 {
		silence, err := admin.Silence(t.Context(), Silence{Matchers: map[string]string{"role": "billing"}, CreatedBy: "ann"}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		errs := make([]error, 4)
		var operators sync.WaitGroup
		for i := range errs {
			operators.Go(func() { errs[i] = admin.Unsilence(t.Context(), silence.ID, fmt.Sprint("operator ", i)) })
		}
		operators.Wait()
		ended := slices.Index(errs, nil)
		for i, err := range errs {
			if i != ended && !errors.Is(err, ErrNoSilence) {
				t.Errorf("operator %d, after operator %d: %v; want ErrNoSilence", i, ended, err)
			}
		}
		by := value[[]string](w, `SELECT array_agg(changed_by) FROM {changes} WHERE action = 'unsilence' AND detail = 'silence ' || $1::bigint`, silence.ID)
		if ended < 0 || !slices.Equal(by, []string{fmt.Sprint("operator ", ended)}) {
			t.Errorf("operator %d ended the silence; on record: %q", ended, by)
		}
	}
}

// TestTwoOperatorsChangeOneSilence: one operator ends the silences of an alert in the command
// while another one silences it for longer on the page. What lasts afterwards is what the
// record of both says.
func TestTwoOperatorsChangeOneSilence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	labels := map[string]string{"role": "billing"}
	command, page := NewAdmin(w.backend, w.pool), NewAdmin(w.backend, w.pool)
	if _, err := page.Silence(t.Context(), Silence{Matchers: labels, CreatedBy: "page"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		var operators sync.WaitGroup
		var longer Silence
		var silenced, unsilenced error
		operators.Go(func() {
			longer, silenced = page.Silence(t.Context(), Silence{Matchers: labels, CreatedBy: "page"}, 2*time.Hour)
		})
		operators.Go(func() { unsilenced = command.UnsilenceAlert(t.Context(), "down", labels, "command") })
		operators.Wait()
		if silenced != nil || unsilenced != nil && !errors.Is(unsilenced, ErrNoSilence) {
			t.Fatalf("page: %v; command: %v", silenced, unsilenced)
		}
		lasting, err := command.Silences(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		recorded := value[[]int64](w, `
			SELECT coalesce(array_agg(s.id ORDER BY s.id DESC), '{}')
			FROM {alert_silences} s
			WHERE EXISTS (SELECT FROM {changes} WHERE action = 'silence' AND changed_by = 'page' AND detail LIKE 'silence ' || s.id || ' until %')
				AND NOT EXISTS (SELECT FROM {changes} WHERE action = 'unsilence' AND changed_by = 'command' AND detail = 'silence ' || s.id)`)
		var shown []int64
		for _, s := range lasting {
			shown = append(shown, s.ID)
		}
		if !slices.Equal(shown, recorded) {
			t.Fatalf("the silences %v last; by the record of both operators %v", shown, recorded)
		}
		if len(shown) > 1 || len(shown) == 1 && shown[0] != longer.ID {
			t.Fatalf("the silences %v last; the last one is %d", shown, longer.ID)
		}
	}
}

// TestSilencesOfAnAlertEnd: those that an alert matches end, and no others. Without labels, those
// end that name the rule, and a rule names its silence in the list while it does not fire.
func TestSilencesOfAnAlertEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("a", Config{Rules: []Rule{{Name: "down", Condition: "up == 0", Severity: "critical"}}})
	w.await("the rule is stored", func() bool {
		names, err := NewAdmin(w.backend, w.pool).RuleNames(t.Context())
		return err == nil && len(names) == 1
	})
	admin := NewAdmin(w.backend, w.pool)
	for _, s := range []Silence{
		{Rule: "down", Matchers: map[string]string{"role": "billing"}}, {Rule: "down", Matchers: map[string]string{"role": "orders"}},
		{Matchers: map[string]string{"role": "billing"}}, {Matchers: map[string]string{"role": "mails"}},
	} {
		s.CreatedBy = "ann"
		if _, err := admin.Silence(t.Context(), s, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	lasting := func(want ...int64) {
		t.Helper()
		all, err := admin.Silences(t.Context(), false)
		var ids []int64
		for _, s := range all {
			ids = append(ids, s.ID)
		}
		slices.Sort(ids)
		if err != nil || !slices.Equal(ids, want) {
			t.Errorf("the silences %v last (%v), want %v", ids, err, want)
		}
	}
	list, err := alerting.List(t.Context(), w.backend, w.pool)
	if err != nil || len(list) != 1 || list[0].SilencedBy != "ann" || list[0].SilencedUntil.IsZero() {
		t.Errorf("the rules are %+v (%v), want one silenced by ann", list, err)
	}
	labels := map[string]string{"alertname": "down", "role": "billing"}
	if err := admin.UnsilenceAlert(t.Context(), "down", labels, "bob"); err != nil {
		t.Fatal(err)
	}
	lasting(2, 4)
	if err := admin.UnsilenceAlert(t.Context(), "down", labels, "bob"); !errors.Is(err, ErrNoSilence) {
		t.Errorf("the same again: %v, want ErrNoSilence", err)
	}
	if err := admin.UnsilenceAlert(t.Context(), "down", nil, "bob"); err != nil {
		t.Fatal(err)
	}
	lasting(4)
}

// wantChanges checks the changes of alerts that are on record, in their order.
func (w *world) wantChanges(want ...string) {
	w.Helper()
	got := value[[]string](w, `
SELECT array_agg(changed_by || ' ' || action || ' ' || name || ': ' || regexp_replace(detail, '[-0-9]{10}T[0-9:]{8}Z', 'TIME') ORDER BY id)
FROM {changes}
WHERE kind = 'alert'`)
	if !slices.Equal(got, want) {
		w.Errorf("the changes on record are %q; want %q", got, want)
	}
}

// TestAlertSilencedUntilItEndsIsNotSent: an alert that begins and ends within a silence
// notifies no one.
func TestAlertSilencedUntilItEndsIsNotSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := NewAdmin(w.backend, w.pool).Silence(t.Context(), Silence{Matchers: map[string]string{"severity": "critical"}, CreatedBy: "ann"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	p := w.start("a", Config{Rules: []Rule{vacant}})
	w.await("that it fires", func() bool { return slices.Equal(w.states(), []string{"no_scheduler_leader firing"}) })
	witness := vacant
	witness.Name, witness.Severity = "witness", "info"
	if err := p.engine.Reload([]Rule{witness}, w.set); err != nil {
		t.Fatal(err)
	}
	w.await("that it is over", func() bool { return slices.Equal(w.states(), []string{"witness firing"}) })
	w.wantReceived("witness firing")
}

// TestExpiredAcknowledgmentNotifiesAgain: an acknowledged alert shows who handles it; when
// the time is over and the alert still fires, its receivers are notified again, once.
func TestExpiredAcknowledgmentNotifiesAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := NewAdmin(w.backend, w.pool)
	p := w.start("a", Config{Rules: []Rule{vacant}})
	w.wantReceived("no_scheduler_leader firing")
	w.await("that it is settled", func() bool {
		return value[int](w, `SELECT count(*) FROM {alert_notifications} WHERE status = 'sent'`) == 1
	})
	if n, err := admin.Acknowledge(t.Context(), vacant.Name, map[string]string{"severity": "critical"}, "ann", time.Hour); n != 1 || err != nil {
		t.Fatalf("%d alerts are acknowledged, %v", n, err)
	}
	list, err := alerting.List(t.Context(), w.backend, w.pool)
	if err != nil || list[0].Alerts[0].AckedBy != "ann" || time.Until(list[0].Alerts[0].AckedUntil) < 50*time.Minute {
		t.Errorf("the list is %+v, %v", list, err)
	}
	// Set by hand: the shortest acknowledgment lasts a minute.
	w.exec(`UPDATE {alert_states} SET acked_until = clock_timestamp()`)
	w.wantReceived("no_scheduler_leader firing", "no_scheduler_leader firing")
	if by := value[string](w, `SELECT acked_by FROM {alert_states}`); by != "" {
		t.Errorf("after its time it is acknowledged by %q", by)
	}
	if err := p.engine.Reload([]Rule{}, w.set); err != nil {
		t.Fatal(err)
	}
	w.wantReceived("no_scheduler_leader firing", "no_scheduler_leader firing", "no_scheduler_leader resolved")
	past, err := admin.History(t.Context(), HistoryQuery{})
	if err != nil || len(past) != 1 || past[0].AckedBy != "ann" {
		t.Errorf("the history is %+v, %v", past, err)
	}
	w.wantChanges("ann acknowledge no_scheduler_leader: alerts: 1, until TIME")
}

// TestAdminRejectsInvalidInput: an operator learns what is wrong, and nothing is written.
func TestAdminRejectsInvalidInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := NewAdmin(w.backend, w.pool)
	label := map[string]string{"role": "r"}
	for what, test := range map[string]struct {
		silence Silence
		length  time.Duration
		want    error
	}{
		"nothing to match":          {Silence{CreatedBy: "ann"}, time.Hour, tenure.ErrInvalidConfig},
		"no author":                 {Silence{CreatedBy: " ", Matchers: label}, time.Hour, tenure.ErrInvalidConfig},
		"a short time":              {Silence{CreatedBy: "ann", Matchers: label}, time.Second, tenure.ErrInvalidConfig},
		"a long time":               {Silence{CreatedBy: "ann", Matchers: label}, 366 * 24 * time.Hour, tenure.ErrInvalidConfig},
		"an impossible label":       {Silence{CreatedBy: "ann", Matchers: map[string]string{"a-b": "x"}}, time.Hour, tenure.ErrInvalidConfig},
		"a control character":       {Silence{CreatedBy: "ann\x1b[2J", Matchers: label}, time.Hour, tenure.ErrInvalidConfig},
		"a long comment":            {Silence{CreatedBy: "ann", Matchers: label, Comment: strings.Repeat("x", 2000)}, time.Hour, tenure.ErrInvalidConfig},
		"an alert that is not one":  {Silence{CreatedBy: "ann", Rule: "none"}, time.Hour, tenure.ErrInvalidConfig},
		"a label that is not UTF-8": {Silence{CreatedBy: "ann", Matchers: map[string]string{"role": "\xff"}}, time.Hour, tenure.ErrInvalidConfig},
	} {
		if _, err := admin.Silence(t.Context(), test.silence, test.length); !errors.Is(err, test.want) {
			t.Errorf("%s: the error is %v", what, err)
		}
	}
	if _, err := admin.Acknowledge(t.Context(), "none", nil, "ann", time.Hour); !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Errorf("the error is %v", err)
	}
	w.exec(`INSERT INTO {alert_rules} (name, position, condition, for_ms, severity, labels, annotations, notify, changed_by)
		VALUES ('calm', 1, 'vector(0) > 1', 0, 'info', '{}', '{}', '{}', 'a')`)
	if _, err := admin.Acknowledge(t.Context(), "calm", nil, "ann", time.Hour); !errors.Is(err, ErrNotFiring) {
		t.Errorf("the error is %v", err)
	}
	if n := value[int](w, `SELECT count(*) FROM {alert_silences}`); n != 0 {
		t.Errorf("%d silences were written", n)
	}
}

// TestOldRecordsArePruned: alerts and silences that ended 90 days ago are dropped.
//
// Set by hand: 90 days cannot pass in a test.
func TestOldRecordsArePruned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, age := range []string{"91 days", "89 days"} {
		w.exec(`INSERT INTO {alert_history} (rule, fingerprint, severity, labels, summary, fired_at, ended_at)
			VALUES ('r', 'f', 'info', '{}', '', now() - $1::interval - interval '1 hour', now() - $1::interval)`, age)
		w.exec(`INSERT INTO {alert_silences} (rule, created_by, until) VALUES ('r', 'ann', now() - $1::interval)`, age)
	}
	w.exec(`INSERT INTO {alert_history} (rule, fingerprint, severity, labels, summary, fired_at) VALUES ('fires', 'f', 'info', '{}', '', now() - interval '91 days')`)
	if err := w.tables.pruneRecords(t.Context()); err != nil {
		t.Fatal(err)
	}
	if past, silences := value[int](w, `SELECT count(*) FROM {alert_history}`), value[int](w, `SELECT count(*) FROM {alert_silences}`); past != 2 || silences != 1 {
		t.Errorf("left are %d alerts and %d silences", past, silences)
	}
}
