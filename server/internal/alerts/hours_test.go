package alerts

import (
	"slices"
	"testing"
)

// A new leader knows what happened in the hours before it, so that an alert over
// hours neither ends nor begins anew because the leader has changed.
//
// Set by hand: five hours cannot pass in a test; real samples are made older.
func TestConditionsOverHoursUseOldSamples(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rules := []Rule{{Name: "many", Condition: `sum(increase(t_total[6h])) > 4`, Severity: "warning", Notify: []string{"hook"}}}
	first := w.start("first", Config{Rules: rules})
	for ago, value := range map[string]float64{"5 hours": 0, "3 hours": 3, "1 hour": 5} {
		w.report(first.node, map[string]float64{"t_total": value})
		w.exec(`UPDATE {samples} SET at = at - $1::interval WHERE at > clock_timestamp() - interval '30 minutes'`, ago)
	}
	w.report(first.node, map[string]float64{"t_total": 5})
	first.stop()
	second := w.start("second", Config{Rules: rules}) // the first one may have read samples before they were old
	w.await("that it fires", func() bool { return slices.Equal(w.states(), []string{"many firing"}) })
	fired := value[string](w, `SELECT fired_at::text FROM {alert_states}`)
	second.stop()
	// What is over goes in the first round in which everything is known.
	w.exec(`INSERT INTO {alert_states} (rule, fingerprint, state, severity, labels, annotations, value, active_at)
		VALUES ('many', 'over', 'pending', 'warning', '{}', '{}', 0, now())`)
	w.start("third", Config{Rules: rules})
	w.await("such a round", func() bool { return slices.Equal(w.states(), []string{"many firing"}) })
	if again := value[string](w, `SELECT fired_at::text FROM {alert_states}`); again != fired {
		t.Errorf("it fired at %s, and again at %s", fired, again)
	}
	w.await("the notification", func() bool { received, _ := w.receiver.all(); return len(received) > 0 })
	if received, _ := w.receiver.all(); !slices.Equal(received, []string{"many firing"}) {
		t.Errorf("received %q", received)
	}
}
