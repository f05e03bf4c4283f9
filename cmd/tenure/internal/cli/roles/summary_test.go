package roles

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/program/alerting"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retention"
)

// led returns roles with a leader that has a session.
func led(names ...string) (all []history.RoleStatus) {
	node := uuid.New()
	for _, name := range names {
		all = append(all, history.RoleStatus{
			Role: name, Leader: &tenure.Leader{Role: name, NodeID: node}, Sessions: []history.LockSession{{NodeID: node}},
		})
	}
	return all
}

// nodes returns living nodes, and dead ones that were silent for a time.
func nodes(alive int, dead ...time.Duration) (all []tenure.Member) {
	for i := range alive + len(dead) {
		m := tenure.Member{NodeInfo: tenure.NodeInfo{Name: fmt.Sprintf("api-%d", i+1)}}
		m.Status = tenure.StatusActive
		if i >= alive {
			m.Status, m.SilentFor = tenure.StatusDead, dead[i-alive]
		}
		all = append(all, m)
	}
	return all
}

// The first line states that all is well, or what is not.
func TestSummaryNamesWhatIsNotWell(t *testing.T) {
	t.Parallel()
	vacant := func(name string) history.RoleStatus { return history.RoleStatus{Role: name} }
	foreign := history.RoleStatus{Role: "key:51", Sessions: []history.LockSession{{PID: 7}}}
	waits := history.RoleStatus{Role: "slow", Sessions: []history.LockSession{{NodeID: uuid.New()}}}
	lost := led("lost")
	lost[0].Sessions = nil
	draining := nodes(2)
	draining[1].Status = tenure.StatusDraining
	for _, test := range []struct {
		name    string
		holders []history.RoleStatus
		members []tenure.Member
		leases  bool
		want    string
	}{
		{"well", led("a", "b"), nodes(5), false, "All 2 roles are led; 5 nodes are alive."},
		{"one role", led("billing"), nodes(1), false, "The role billing is led; 1 node is alive."},
		{"vacant", append(led("a", "b"), vacant("billing")), nodes(4, 41*time.Second), false,
			"1 of 3 roles has no leader: billing; 1 node is dead: api-5 for 41 s; 4 nodes are alive."},
		{"many vacant", []history.RoleStatus{vacant("a"), vacant("b"), vacant("c"), vacant("d"), vacant("e")}, nil, false,
			"5 of 5 roles have no leader: a, b, c, and 2 more; there are no nodes."},
		{"waits", []history.RoleStatus{waits}, nodes(1), false, "1 of 1 role has no leader: slow; 1 node is alive."},
		{"foreign", append(led("a", "b"), foreign), nodes(1), false, "2 of 3 roles are led; another program holds 1 role: key:51; 1 node is alive."},
		{"lost", append(led("a"), lost...), nodes(1), false, "1 of 2 roles is led; 1 leader has no session: lost; 1 node is alive."},
		{"none alive", []history.RoleStatus{vacant("a")}, nodes(0, 2*time.Minute, 41*time.Second), false,
			"1 of 1 role has no leader: a; no node is alive; 2 nodes are dead: api-2 for 41 s, api-1 for 2 min."},
		{"draining", led("a"), draining, false, "The role a is led; 2 nodes are alive, 1 of them joining or draining."},
		{"no roles", nil, nodes(1), false, "No role has had a leader yet; 1 node is alive."},
		{"hostile", []history.RoleStatus{vacant("\x1b[2J")}, nodes(1), false, `1 of 1 role has no leader: \u001b[2J; 1 node is alive.`},
	} {
		s := summary{}
		s.takeRoles(test.holders, test.leases)
		s.takeNodes(test.members)
		if got := s.sentence(); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
	s := summary{}
	s.takeRoles(lost, true)
	if got, want := s.sentence(), "The role lost is led."; got != want {
		t.Errorf("leases: got %q, want %q", got, want)
	}
	now := time.Now()
	s = summary{roles: []string{"a", "b", "c"}, vacant: []lack{{"a", -1}, {"b", -1}, {"c", -1}}, now: now}
	s.takeVacancies([]history.Term{{Role: "a", Ended: now}, {Role: "b", Ended: now.Add(-3723 * time.Second)}})
	if got, want := s.sentence(), "3 of 3 roles have no leader: b for 1 h 2 min, a for less than 1 s, c."; got != want {
		t.Errorf("vacancies: got %q, want %q", got, want)
	}
}

// The first line names schedules, processors and alerts that are not well, and what could
// not be read; JSON has the same as problems.
func TestSummaryNamesWorkThatIsNotWell(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	every := func(name string) cron.Status { return cron.Status{Schedule: cron.Schedule{Name: name}} }
	failing, paused, broken, late, stuck, ahead := every("report"), every("paused"), every("broken"), every("late"), every("stuck"), every("ahead")
	failing.FailedInRow, paused.FailedInRow, paused.Paused, broken.Problem = 31, 5, true, errors.New("no zone")
	late.Overdue, stuck.FailingSince, stuck.Overdue, ahead.Ahead = 3*time.Hour, now, time.Hour, 2*time.Hour
	fires := func(name, severity, silencedBy string) alerting.Status {
		return alerting.Status{
			Rule: alerting.Rule{Name: name, Severity: severity}, State: alerting.Firing,
			Alerts: []alerting.Alert{{State: alerting.Pending}, {State: alerting.Firing, SilencedBy: silencedBy}},
		}
	}
	s := summary{now: now, unread: []notRead{{"alerts", errors.New("no privilege\x1b[2J")}}}
	s.takeRoles(led("a", "b"), false)
	s.takeSchedules([]cron.Status{failing, paused, broken, every("well"), late, stuck, ahead})
	s.takeProcessors([]processor.Status{
		{Name: "well", Status: "active", Led: true, Behind: 7},
		{Name: "idle", Status: "active"},
		{Name: "stopped", Status: "failed", Errors: 10, DeadLetters: 2},
		{Name: "hook\x1b[2J", Status: "active", Led: true, Errors: 1},
		{Name: "unled", Status: "active", Behind: 3},
		{Name: "blind", Status: "active", Led: true, StuckError: "no column"},
		{Name: "paused", Status: "paused", Errors: 4, Behind: 4, StuckError: "no log"},
	})
	s.takeAlerts([]alerting.Status{fires("slow", "warning", ""), fires("down", "critical", ""), fires("known", "critical", "ann"), {Rule: alerting.Rule{Name: "calm"}}})
	s.takeRetention([]retention.Status{{Rows: "runs", Errors: 3, Late: 10 * time.Hour}, {Rows: "terms"}, {Rows: "changes by hand", Late: time.Hour}})
	want := `All 2 roles are led; 1 schedule fails: report (31 times in a row); 1 schedule is overdue: late for 3 h; ` +
		`1 schedule has a leader that cannot work: stuck; 1 schedule waits for the database's clock: ahead for 2 h; 1 schedule cannot run: broken; ` +
		`1 processor stopped after errors: stopped; 1 processor fails: hook\u001b[2J (once); 1 processor cannot work: blind; 1 processor has events and no leader: unled (3 events); ` +
		`1 processor has dead letters: stopped (2); 2 alerts fire: down (critical), slow (warning); 1 kind of old rows cannot be removed: runs (3 times in a row); 2 kinds of old rows are overdue for removal: runs for 10 h, changes by hand for 1 h; alerts cannot be read.`
	if got := s.sentence(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var kinds []string
	for _, p := range s.problems() {
		kinds = append(kinds, fmt.Sprintf("%s %d", p.Kind, p.Count))
	}
	if got, want := strings.Join(kinds, ", "), "failing_schedule 1, overdue_schedule 1, stuck_schedule 1, ahead_schedule 1, invalid_schedule 1, failed_processor 1, failing_processor 1, "+
		"stuck_processor 1, waiting_processor 1, dead_letters 1, firing_alert 2, failing_retention 1, late_retention 2, unreadable 1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var what []string
	for _, f := range s.all() {
		what = append(what, f.What)
	}
	if alert, work := slices.Index(what, "alert fires"), slices.Index(what, "processor has dead letters"); work < 0 || alert < work {
		t.Errorf("top lists alerts before work: %q", what)
	}
	many := summary{}
	for range maxProblemNames + 1 {
		many.lost = append(many.lost, "x")
	}
	if p := many.problems(); p[0].Count != maxProblemNames+1 || len(p[0].Names) != maxProblemNames {
		t.Errorf("%d names of %d", len(p[0].Names), p[0].Count)
	}
}
