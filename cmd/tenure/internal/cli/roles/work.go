package roles

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/program/alerting"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retention"
)

// workReader reads the schedules, the processors, the alerts and the retention of an
// installation.
type workReader struct {
	backend *postgres.Backend
	pool    *pgxpool.Pool
}

// workTimeout bounds the reads of schedules, processors and alerts together: the summary
// must not wait for them longer.
const workTimeout = 2 * time.Second

// read adds the problems of schedules, processors and alerts to a summary. It names
// unreadable features, and skips missing ones.
func (w *workReader) read(ctx context.Context, s *summary) {
	ctx, cancel := context.WithTimeout(ctx, workTimeout)
	defer cancel()
	versions, err := schema.Of(w.backend).Versions(ctx, w.pool)
	for _, part := range []struct {
		feature string
		read    func(context.Context, *summary) error
	}{{"schedules", w.readSchedules}, {"processors", w.readProcessors}, {"alerts", w.readAlerts}, {"rollups", w.readRetention}} {
		if err == nil && versions[part.feature].Present == 0 {
			continue
		}
		cause := err
		if cause == nil {
			cause = part.read(ctx, s)
		}
		if cause != nil {
			s.unread = append(s.unread, notRead{part.feature, cause})
		}
	}
}

func (w *workReader) readSchedules(ctx context.Context, s *summary) error {
	all, err := cron.NewAdmin(w.backend, w.pool).List(ctx)
	s.takeSchedules(all)
	return err
}

func (w *workReader) readProcessors(ctx context.Context, s *summary) error {
	all, err := processor.NewAdmin(w.backend, w.pool).List(ctx)
	s.takeProcessors(all)
	return err
}

func (w *workReader) readAlerts(ctx context.Context, s *summary) error {
	all, err := alerting.List(ctx, w.backend, w.pool)
	s.takeAlerts(all)
	return err
}

func (w *workReader) readRetention(ctx context.Context, s *summary) error {
	all, err := retention.List(ctx, w.backend, w.pool)
	s.takeRetention(all)
	return err
}

func (s *summary) takeSchedules(all []cron.Status) {
	var failing, late, broken, stuck, ahead []lack
	for _, one := range all {
		switch {
		case one.Paused:
		case one.Problem != nil:
			broken = append(broken, lack{one.Name, -1})
		case !one.FailingSince.IsZero():
			stuck = append(stuck, lack{one.Name, -1})
		case one.Overdue > 0:
			late = append(late, lack{one.Name, one.Overdue})
		case one.Ahead > 0:
			ahead = append(ahead, lack{one.Name, one.Ahead})
		}
		if !one.Paused && one.FailedInRow > 0 {
			failing = append(failing, lack{fmt.Sprintf("%s (%s)", one.Name, record.AtLeast(one.FailedInRow)+inRow(one.FailedInRow)), -1})
		}
	}
	slices.SortStableFunc(late, longest)
	s.add("failing_schedule", "schedule fails", "schedules fail", failing)
	s.add("overdue_schedule", "schedule is overdue", "schedules are overdue", late)
	s.add("stuck_schedule", "schedule has a leader that cannot work", "schedules have a leader that cannot work", stuck)
	s.add("ahead_schedule", "schedule waits for the database's clock", "schedules wait for the database's clock", ahead)
	s.add("invalid_schedule", "schedule cannot run", "schedules cannot run", broken)
}

func (s *summary) takeProcessors(all []processor.Status) {
	var failed, failing, stuck, waiting, letters []lack
	for _, one := range all {
		switch {
		case one.Status == "failed":
			failed = append(failed, lack{one.Name, -1})
		case one.Status == "paused":
		case one.Errors > 0:
			failing = append(failing, lack{fmt.Sprintf("%s (%s)", one.Name, inRow(int64(one.Errors))), -1})
		}
		if one.Status == "active" && one.StuckError != "" {
			stuck = append(stuck, lack{one.Name, -1})
		}
		if one.Status == "active" && !one.Led && one.Behind > 0 {
			waiting = append(waiting, lack{fmt.Sprintf("%s (%s)", one.Name, plural(int(one.Behind), "event", "events")), -1})
		}
		if waiting := one.DeadLetters - one.Skipped; waiting > 0 {
			letters = append(letters, lack{fmt.Sprintf("%s (%d)", one.Name, waiting), -1})
		}
	}
	s.add("failed_processor", "processor stopped after errors", "processors stopped after errors", failed)
	s.add("failing_processor", "processor fails", "processors fail", failing)
	s.add("stuck_processor", "processor cannot work", "processors cannot work", stuck)
	s.add("waiting_processor", "processor has events and no leader", "processors have events and no leader", waiting)
	s.add("dead_letters", "processor has dead letters", "processors have dead letters", letters)
}

// takeAlerts takes the alerts that fire and are not silenced, the worst first.
func (s *summary) takeAlerts(all []alerting.Status) {
	all = slices.SortedStableFunc(slices.Values(all), func(a, b alerting.Status) int {
		return cmp.Compare(slices.Index(alerting.Severities, b.Severity), slices.Index(alerting.Severities, a.Severity))
	})
	var firing []lack
	for _, rule := range all {
		loud := func(a alerting.Alert) bool { return a.State == alerting.Firing && a.SilencedBy == "" }
		if slices.ContainsFunc(rule.Alerts, loud) {
			firing = append(firing, lack{fmt.Sprintf("%s (%s)", rule.Name, rule.Severity), -1})
		}
	}
	s.add("firing_alert", "alert fires", "alerts fire", firing)
}

// takeRetention takes the kinds of rows impossible to remove, or overdue for removal.
func (s *summary) takeRetention(all []retention.Status) {
	var failing, late []lack
	for _, one := range all {
		if one.Errors > 0 {
			failing = append(failing, lack{fmt.Sprintf("%s (%s)", one.Rows, inRow(one.Errors)), -1})
		}
		if one.Late > 0 {
			late = append(late, lack{one.Rows, one.Late})
		}
	}
	slices.SortStableFunc(late, longest)
	s.add("failing_retention", "kind of old rows cannot be removed", "kinds of old rows cannot be removed", failing)
	s.add("late_retention", "kind of old rows is overdue for removal", "kinds of old rows are overdue for removal", late)
}

func inRow(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times in a row", n)
}

// longest orders lacks by their length, the longest first.
func longest(a, b lack) int { return cmp.Compare(b.lasted, a.lasted) }

// fault is a problem, with its subject.
type fault struct {
	kind         string
	one, several string // the verb phrase of the sentence
	of           []lack
}

func (s *summary) add(kind, one, several string, of []lack) {
	if len(of) > 0 {
		s.faults = append(s.faults, fault{kind, one, several, of})
	}
}

// text is the fault as a part of a sentence.
func (f fault) text() string {
	return plural(len(f.of), f.one, f.several) + ": " + lacks(f.of)
}

// problemRecord is a fault as printed in JSON.
type problemRecord struct {
	Kind  string   `json:"kind"`
	Count int      `json:"count"`
	Names []string `json:"names"` // at most maxProblemNames
	// Causes are why each of the names could not be read.
	Causes []string `json:"causes,omitempty"`
}

// maxProblemNames is how many names of a problem are printed in JSON.
const maxProblemNames = 100

// problems returns all problems.
func (s summary) problems() []problemRecord {
	all := []problemRecord{}
	add := func(kind string, names []string) {
		if len(names) > 0 {
			all = append(all, problemRecord{Kind: kind, Count: len(names), Names: names[:min(len(names), maxProblemNames)]})
		}
	}
	add("vacant_role", namesOf(s.vacant))
	add("leader_without_session", s.lost)
	add("foreign_role", s.foreign)
	var waiting []string
	for _, b := range s.blocked {
		waiting = append(waiting, console.Flatten(b.role))
	}
	add("blocked_role", waiting)
	add("dead_node", namesOf(s.dead))
	for _, f := range s.faults {
		add(f.kind, namesOf(f.of))
	}
	add("unreadable", namesOfUnread(s.unread))
	for _, u := range s.unread {
		last := &all[len(all)-1]
		last.Causes = append(last.Causes, console.Flatten(u.cause.Error()))
	}
	return all
}

func namesOfUnread(all []notRead) []string {
	var names []string
	for _, u := range all {
		names = append(names, u.what)
	}
	return names
}

// namesOf returns the missing things as printable texts.
func namesOf(all []lack) []string {
	var names []string
	for _, l := range all {
		names = append(names, console.Flatten(l.name))
	}
	return names
}
