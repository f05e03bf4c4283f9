package alerts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/alerting"
	"github.com/exactly-one/tenure/metrics"
)

// vacant is the source's rule: it fires where no node leads the scheduler.
var vacant = Rule{
	Name: "no_scheduler_leader", Condition: "sum(forge_leader_is_leader{role='scheduler'}) == 0", Severity: "critical",
	Annotations: map[string]string{"summary": "{{ $value }} lead"}, Notify: []string{"hook"},
}

func (w *world) wantReceived(want ...string) {
	w.Helper()
	w.await("the notifications "+strings.Join(want, ", "), func() bool {
		received, _ := w.receiver.all()
		return len(received) >= len(want)
	})
	if received, _ := w.receiver.all(); !slices.Equal(received, want) {
		w.Errorf("received are %q; want %q", received, want)
	}
}

// TestBeginningAndEndAreSentOnce: an alert fires because a role that never had a candidate has
// no leader; its beginning and its end are each sent once.
func TestBeginningAndEndAreSentOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start("a", Config{Rules: []Rule{vacant}})
	w.wantReceived("no_scheduler_leader firing")
	list, err := alerting.List(t.Context(), w.backend, w.pool)
	if err != nil || len(list) != 1 {
		t.Fatalf("the list is %+v, %v", list, err)
	}
	if s := list[0]; s.State != Firing || s.ChangedBy != "a" || len(s.Alerts) != 1 || s.Alerts[0].Annotations["summary"] != "0 lead" {
		t.Errorf("the list is %+v", s)
	}
	recorder := httptest.NewRecorder()
	p.engine.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics/cluster", http.NoBody))
	body, _ := io.ReadAll(recorder.Body)
	for _, line := range []string{`tenure_leader_is_leader{role="scheduler"} 0`, "tenure_aggregator_is_leader 1", `tenure_aggregator_alerts{state="firing"} 1`} {
		if !strings.Contains(string(body), line+"\n") {
			t.Errorf("the metrics lack %s:\n%s", line, body)
		}
	}
	w.report(p.node, map[string]float64{"forge_leader_is_leader": 0}) // no node leads still
	if err := p.engine.Reload([]Rule{}, w.set); err != nil {
		t.Fatal(err)
	}
	w.wantReceived("no_scheduler_leader firing", "no_scheduler_leader resolved")
	w.await("that no alert is left", func() bool { return len(w.states()) == 0 })
}

// TestAlertFiresOnlyAfterFor: an alert that has lasted for less than its "for" is pending and not
// sent; one that ends before that time never fires.
func TestAlertFiresOnlyAfterFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slow := vacant
	slow.Name, slow.For = "slow", time.Hour
	high := Rule{Name: "high", Condition: "tenure_queue > 5", Severity: "warning", Notify: []string{"hook"}}
	p := w.start("a", Config{Rules: []Rule{slow, high}})
	w.await("the alert", func() bool { return slices.Equal(w.states(), []string{"slow pending"}) })
	w.report(p.node, map[string]float64{"forge_queue": 6})
	w.await("the second alert", func() bool { return slices.Equal(w.states(), []string{"high firing", "slow pending"}) })
	w.report(p.node, map[string]float64{"forge_queue": 4})
	w.wantReceived("high firing", "high resolved")
	if states := w.states(); !slices.Equal(states, []string{"slow pending"}) {
		t.Errorf("the states are %q", states)
	}
}

// TestNextLeaderContinuesFor: after a leader is killed in the middle of "for", the next leader
// continues the count, with the rules of the database.
func TestNextLeaderContinuesFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := vacant
	rule.For = 3 * time.Second
	a := w.start("a", Config{Rules: []Rule{rule}})
	w.await("that the alert is pending", func() bool { return slices.Equal(w.states(), []string{"no_scheduler_leader pending"}) })
	active := value[time.Time](w, `SELECT active_at FROM {alert_states}`)
	w.start("b", Config{})
	w.kill(a)
	w.wantReceived("no_scheduler_leader firing")
	fired, again := value[time.Time](w, `SELECT fired_at FROM {alert_states}`), value[time.Time](w, `SELECT active_at FROM {alert_states}`)
	if !again.Equal(active) || fired.Sub(active) < rule.For {
		t.Errorf("it was active at %v and then %v, and fired at %v", active, again, fired)
	}
	if term := value[int64](w, `SELECT term FROM {alert_notifications}`); term < 2 {
		t.Errorf("it was sent in the term %d", term)
	}
	w.start("c", Config{Rules: []Rule{}})
	w.wantReceived("no_scheduler_leader firing", "no_scheduler_leader resolved")
}

// kill ends a process's session as a crash does: nothing is given up politely.
func (w *world) kill(p *process) {
	w.Helper()
	w.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE pid = (SELECT pid FROM {nodes} WHERE id = $1)`, p.node.ID())
	p.stop()
}

// TestNextLeaderSendsUnsentNotifications: what the last leader wrote and could not send, the next
// one sends, once.
func TestNextLeaderSendsUnsentNotifications(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receiver.answer(500)
	a := w.start("a", Config{Rules: []Rule{vacant}})
	w.await("an attempt", func() bool { _, refused := w.receiver.all(); return refused > 0 })
	w.start("b", Config{})
	w.kill(a)
	w.receiver.answer(200)
	w.exec(`UPDATE {alert_notifications} SET next_attempt_at = clock_timestamp()`)
	w.wantReceived("no_scheduler_leader firing")
	w.await("that it is settled", func() bool {
		return value[int](w, `SELECT count(*) FROM {alert_notifications} WHERE status = 'sent'`) == 1
	})
	if n := value[int](w, `SELECT count(*) FROM {alert_notifications}`); n != 1 {
		t.Errorf("there are %d notifications", n)
	}
}

// TestNotificationsAreRetriedDuringOutage: what a receiver refuses for an hour is kept, shown and tried again;
// the end of an alert is never sent before its beginning.
func TestNotificationsAreRetriedDuringOutage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receiver.answer(500)
	p := w.start("a", Config{Rules: []Rule{vacant}})
	w.await("an attempt", func() bool { _, refused := w.receiver.all(); return refused > 0 })
	w.await("that the list shows it", func() bool {
		list, err := alerting.List(t.Context(), w.backend, w.pool)
		return err == nil && list[0].PendingNotifications == 1 && strings.Contains(list[0].NotificationProblem, "answered 500")
	})
	if err := p.engine.Reload([]Rule{}, w.set); err != nil {
		t.Fatal(err)
	}
	w.await("the end", func() bool { return value[int](w, `SELECT count(*) FROM {alert_notifications}`) == 2 })
	p.stop()
	w.exec(`UPDATE {alert_notifications}
		SET next_attempt_at = clock_timestamp() + CASE WHEN ended_at IS NULL THEN interval '10 minutes' ELSE interval '0' END`)
	if due, err := w.tables.readDue(t.Context(), "hook", 100); err != nil || len(due) > 0 {
		t.Errorf("before the beginning was sent, %+v is due (%v)", due, err)
	}
	w.start("b", Config{})
	w.exec(`UPDATE {alert_notifications} SET created_at = created_at - interval '1 hour', next_attempt_at = clock_timestamp()`)
	_, before := w.receiver.all()
	w.await("another attempt", func() bool { _, refused := w.receiver.all(); return refused > before })
	w.receiver.answer(200)
	w.exec(`UPDATE {alert_notifications} SET next_attempt_at = clock_timestamp()`)
	w.wantReceived("no_scheduler_leader firing", "no_scheduler_leader resolved")
}

// TestNotificationIsDroppedAfterOneDay: after a day a notification is given up, and the next one goes.
//
// Set by hand: a day cannot pass in a test; the attempts are real.
func TestNotificationIsDroppedAfterOneDay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receiver.answer(500)
	w.start("a", Config{Rules: []Rule{vacant}})
	w.await("an attempt", func() bool {
		return value[int](w, `SELECT count(*) FROM {alert_notifications} WHERE last_error <> ''`) == 1
	})
	w.exec(`UPDATE {alert_notifications} SET created_at = created_at - interval '23 hours', next_attempt_at = clock_timestamp(), last_error = ''`)
	w.await("an attempt after 23 hours", func() bool {
		return value[int](w, `SELECT count(*) FROM {alert_notifications} WHERE last_error <> ''`) == 1
	})
	if n := value[int](w, `SELECT count(*) FROM {alert_notifications} WHERE status = 'pending'`); n != 1 {
		t.Fatalf("%d notifications wait after 23 hours, want 1: one is given up after a day", n)
	}
	w.exec(`UPDATE {alert_notifications} SET created_at = created_at - interval '2 hours', next_attempt_at = clock_timestamp()`)
	w.await("that it is given up after a day", func() bool {
		return value[int](w, `SELECT count(*) FROM {alert_notifications} WHERE status = 'failed' AND settled_at IS NOT NULL`) == 1
	})
}

// TestSettledNotificationsAreKeptForAWeek: a leader drops what was sent more than a week
// ago. The notifications are sent; only their time in the row can make them old.
func TestSettledNotificationsAreKeptForAWeek(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start("a", Config{Rules: []Rule{vacant}})
	w.wantReceived("no_scheduler_leader firing")
	if err := p.engine.Reload([]Rule{}, w.set); err != nil {
		t.Fatal(err)
	}
	w.wantReceived("no_scheduler_leader firing", "no_scheduler_leader resolved")
	w.await("that both are settled", func() bool {
		return value[int](w, `SELECT count(*) FROM {alert_notifications} WHERE status = 'sent'`) == 2
	})
	p.stop()
	w.exec(`UPDATE {alert_notifications}
		SET settled_at = settled_at - CASE WHEN ended_at IS NULL THEN interval '7 days 1 hour' ELSE interval '6 days 23 hours' END`)
	w.start("b", Config{})
	w.await("that the notification of more than a week ago is dropped", func() bool {
		return value[int](w, `SELECT count(*) FROM {alert_notifications} WHERE ended_at IS NULL`) == 0
	})
	if n := value[int](w, `SELECT count(*) FROM {alert_notifications}`); n != 1 {
		t.Errorf("%d notifications of less than a week ago are kept, want 1: they are kept for a week", n)
	}
}

// TestUnknownNotifierIsLeftToOtherLeaders: a leader that has no such notifier leaves what it should
// send to others, and says so.
func TestUnknownNotifierIsLeftToOtherLeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start("a", Config{Rules: []Rule{vacant}, Notifiers: w.set})
	w.wantReceived("no_scheduler_leader firing")
	a.stop()
	w.exec(`UPDATE {alert_notifications} SET notifier = 'other', address = 'other', status = 'pending'`)
	w.start("b", Config{})
	w.await("that it is sent", func() bool {
		return value[int](w, `SELECT count(*) FROM {alert_notifications} WHERE last_error LIKE '%on the node b%' AND status = 'pending'`) == 1
	})
}

// TestFailedRuleDoesNotStopOthers: a failed condition is shown; alerts of other rules continue.
func TestFailedRuleDoesNotStopOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bad := Rule{Name: "bad", Condition: "tenure_node_up * on () tenure_leader_is_leader", Severity: "warning", Notify: []string{"hook"}}
	w.start("a", Config{Rules: []Rule{bad, vacant}})
	w.wantReceived("no_scheduler_leader firing")
	w.await("that the error is shown", func() bool {
		return value[int](w, `SELECT count(*) FROM {alert_rules} WHERE name = 'bad' AND last_error <> ''`) == 1
	})
}

func TestNewRejectsInvalidRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	unknown, twice := vacant, vacant
	unknown.Notify = []string{"hooc"}
	broken := Rule{Name: "broken", Condition: "sum(", Severity: "warning"}
	for name, rules := range map[string][]Rule{"an unknown notifier": {unknown}, "a name twice": {vacant, twice}, "no PromQL": {broken}} {
		if _, err := New(Config{Database: w.pool, Rules: rules, Notifiers: w.set}); !isInvalid(err) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	if _, err := New(Config{Interval: 1}); !isInvalid(err) {
		t.Errorf("a short interval: the error is %v", err)
	}
}

func isInvalid(err error) bool {
	return err != nil && strings.Contains(err.Error(), tenure.ErrInvalidConfig.Error())
}

// TestLostSamplesDoNotResolveAlerts: where a crash of the server took all samples, the next leader
// does not take what it does not see for over.
func TestLostSamplesDoNotResolveAlerts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start("a", Config{Rules: []Rule{{Name: "high", Condition: "max(tenure_queue) > 5", Severity: "warning", Notify: []string{"hook"}}}})
	w.report(a.node, map[string]float64{"tenure_queue": 6})
	w.wantReceived("high firing")
	w.kill(a)
	w.exec(`TRUNCATE {samples}`)
	b := w.start("b", Config{Interval: 3 * time.Second})
	w.await("a round of the next leader", func() bool {
		b.engine.mu.Lock()
		defer b.engine.mu.Unlock()
		return b.engine.took > 0
	})
	if states := w.states(); !slices.Equal(states, []string{"high firing"}) {
		t.Errorf("before the samples have come, the alerts are %q", states)
	}
	w.report(b.node, map[string]float64{"tenure_queue": 4})
	w.wantReceived("high firing", "high resolved")
}

// TestSchedulerRuleFiresWithoutLeader: the source's rule with the metrics of real nodes: it fires
// until a node leads the scheduler, and again when that has resigned.
func TestSchedulerRuleFiresWithoutLeader(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("a", Config{Rules: []Rule{vacant}})
	fires, over := "no_scheduler_leader firing", "no_scheduler_leader resolved"
	w.wantReceived(fires)
	b := w.start("b", Config{})
	election, err := b.node.Election(tenure.NamedRole("scheduler"))
	if err != nil {
		t.Fatal(err)
	}
	term, err := election.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewElections(b.node, metrics.Config{Prefix: "forge"}))
	reporter, err := metrics.NewReporter(b.node, w.pool, registry, metrics.ReporterConfig{Interval: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- reporter.Run(ctx) }()
	w.wantReceived(fires, over)
	if err := term.Resign(t.Context()); err != nil {
		t.Error(err)
	}
	w.wantReceived(fires, over, fires)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestChangeOfEndedTermIsDiscarded: a change of a leader whose term has ended is not written, and
// what it believed is forgotten.
func TestChangeOfEndedTermIsDiscarded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start("a", Config{})
	election, err := p.node.Election(tenure.NamedRole("other"))
	if err != nil {
		t.Fatal(err)
	}
	term, err := election.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := term.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := &termWork{tables: w.tables, term: term, present: map[alertKey]alert{}}
	began := alert{Rule: "r", State: Firing, Severity: "info", ActiveAt: time.Now(), FiredAt: time.Now(), Notified: []string{"hook"}}
	c := change{written: []alert{began}, notify: []notification{{alert: began, address: "hook"}}}
	if err := l.commit(t.Context(), c); !errors.Is(err, tenure.ErrFenced) || l.present != nil {
		t.Errorf("the error is %v", err)
	}
	if n := value[int](w, `SELECT (SELECT count(*) FROM {alert_states}) + (SELECT count(*) FROM {alert_notifications})`); n != 0 {
		t.Errorf("%d rows were written", n)
	}
}

// TestChangeInFlightIsSentOnce: the commit of a round is still in flight when the next round
// reads the alerts. Its notification is sent once.
func TestChangeInFlightIsSentOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.start("a", Config{Rules: []Rule{vacant}})
	w.wantReceived("no_scheduler_leader firing")
	w.await("that it is noted", func() bool {
		return value[int](w, "SELECT count(*) FROM {alert_notifications} WHERE status = 'sent'") == 1
	})
	first.stop()
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	for _, table := range []string{"alert_states", "alert_notifications"} {
		for _, sql := range []string{"CREATE TABLE {schema}.saved_%s AS SELECT * FROM {%s}", "DELETE FROM {%[2]s}"} {
			if _, err := w.pool.Exec(t.Context(), pgtest.SQL(w.backend, fmt.Sprintf(sql, table, table))); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := tx.Exec(t.Context(), pgtest.SQL(w.backend, fmt.Sprintf("INSERT INTO {%s} OVERRIDING SYSTEM VALUE SELECT * FROM {schema}.saved_%[1]s", table))); err != nil {
			t.Fatal(err)
		}
	}
	second := w.start("b", Config{Rules: []Rule{vacant}})
	w.await("the next round to wait", func() bool {
		return value[bool](w, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))", int32(tx.Conn().PgConn().PID()))
	})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.await("the round", func() bool { return len(second.engine.firing()) == 1 })
	if n := value[int](w, "SELECT count(*) FROM {alert_notifications}"); n != 1 {
		t.Errorf("the alert is sent %d times", n)
	}
}
