package alerts

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/storage"

	"github.com/exactly-one/tenure"
)

// TestConditionsHaveTenSeconds: one condition may take 10 s, and all together 15 s.
func TestConditionsHaveTenSeconds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		each  time.Duration // that reading the series takes
		rules int
		want  string // in the error of the last rule; empty for none
	}{
		"one of 9 s":  {9 * time.Second, 1, ""},
		"one of 11 s": {11 * time.Second, 1, "timed out"},
		"two of 7 s":  {7 * time.Second, 2, ""},
		"two of 8 s":  {8 * time.Second, 2, "all conditions together"},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, now := measured(1, 1)
			e := newEvaluator(queryableFunc(func(from, to int64) (storage.Querier, error) {
				time.Sleep(test.each) // of the test's own clock
				return store.Querier(from, to)
			}))
			rules := []Rule{{Name: "a", Condition: "tenure_leader_failovers_total"}, {Name: "b", Condition: "tenure_leader_failovers_total"}}[:test.rules]
			outcomes := e.evaluate(t.Context(), now, rules)
			err := outcomes[test.rules-1].err
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: the error of the last condition is %v, want %q: one may take 10 s, and all together 15 s", name, err, test.want)
			}
		})
	}
}

// TestCausesAreReadForAQuarterOfAnHour: a term that ended up to 15 minutes before an alert can
// be its cause.
func TestCausesAreReadForAQuarterOfAnHour(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	election, err := w.idle("b").Election(tenure.NamedRole("scheduler"))
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
	ended := value[time.Time](w, `SELECT ended_at FROM {terms} WHERE role = 'scheduler'`)
	for later, want := range map[time.Duration]int{14 * time.Minute: 1, 16 * time.Minute: 0} {
		changes, err := readChanges(t.Context(), w.backend, ended.Add(later))
		if err != nil || len(changes.Terms) != want {
			t.Errorf("%v after its end, %d terms are read (%v), want %d: the last 15 minutes are read", later, len(changes.Terms), err, want)
		}
	}
}

// TestNotificationIsRetriedAfterFiveSecondsToTenMinutes: the delay of a retry doubles from 5 s
// to 10 min, a fifth more or less.
//
// Set by hand: 1,000 attempts take a week; each new delay is the product's.
func TestNotificationIsRetriedAfterFiveSecondsToTenMinutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	election, err := w.idle("b").Election(tenure.NamedRole("alerts"))
	if err != nil {
		t.Fatal(err)
	}
	term, err := election.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := term.Resign(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	w.note("down", "critical", false, 0)
	for _, test := range []struct {
		before int // attempts
		want   time.Duration
	}{{0, 5 * time.Second}, {1, 10 * time.Second}, {6, 320 * time.Second}, {7, 10 * time.Minute}, {1000, 10 * time.Minute}} {
		w.exec(`UPDATE {alert_notifications} SET attempts = $1, next_attempt_at = clock_timestamp()`, test.before)
		due, err := w.tables.readDue(t.Context(), "hook", 1)
		if err != nil || len(due) != 1 {
			t.Fatalf("%d messages are due (%v), want 1", len(due), err)
		}
		if claimed, err := w.tables.claim(t.Context(), term, due[0]); err != nil || !claimed {
			t.Fatalf("claimed %t, %v", claimed, err)
		}
		before := value[time.Time](w, `SELECT clock_timestamp()`)
		if err := w.tables.settleUnsent(t.Context(), due[0], errors.New("refused"), 0); err != nil {
			t.Fatal(err)
		}
		delay := value[time.Time](w, `SELECT next_attempt_at FROM {alert_notifications}`).Sub(before)
		if delay < test.want*8/10 || delay > test.want*12/10+time.Second {
			t.Errorf("after attempt %d the next one is in %v, want about %v", test.before+1, delay, test.want)
		}
	}
}
