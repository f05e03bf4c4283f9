package dashboard

import (
	"cmp"
	"fmt"

	"github.com/exactly-one/tenure/internal/program/record"
)

// seriousFailures is after how many failures in a row a schedule or processor is
// shown as critical.
const seriousFailures = 3

// trouble is the fault of a processor or a schedule.
type trouble struct {
	level string // good, warning or critical
	text  string // for a sentence; empty if nothing is wrong
}

// trouble returns the fault of a processor.
func (p processorRecord) trouble() trouble {
	level, text := critical, quoted(p.Name)
	switch {
	case p.Status == "failed":
		text += " failed and needs an operator"
	case p.Stuck != "" && p.Status != "paused":
		return trouble{level, withError(text+" cannot work", p.Stuck)}
	case p.Errors == 0 || p.Status == "paused":
		return p.letters()
	default:
		if p.Errors < seriousFailures {
			level = warning
		}
		text += fmt.Sprintf(" failed %s", inRow(int64(p.Errors)))
	}
	return trouble{level, withError(text, p.LastError)}
}

// letters returns the fault of a working processor: unhandled events wait for an
// operator. Events skipped by an operator do not.
func (p processorRecord) letters() trouble {
	waiting := p.DeadLetters - p.Skipped
	if waiting == 0 {
		return trouble{level: good}
	}
	return trouble{warning, fmt.Sprintf("%s has %s.", quoted(p.Name), count(waiting, "dead letter", "dead letters"))}
}

// trouble returns the fault of a schedule.
func (s scheduleRecord) trouble() trouble {
	level, reason := critical, ""
	if s.Last != nil {
		reason = cmp.Or(s.Last.Error, s.RunError)
	}
	switch {
	case s.Paused:
		return trouble{level: good}
	case s.Problem != "":
		return trouble{critical, withError(quoted(s.Name)+" cannot run", s.Problem)}
	case s.LastError != "":
		return trouble{critical, withError(quoted(s.Name)+" has a leader that cannot work", s.LastError)}
	case s.Ahead > 0:
		return trouble{warning, quoted(s.Name) + " waits for the clock of the database."}
	case s.Overdue > 0 && s.FailedInRow < seriousFailures:
		return trouble{warning, quoted(s.Name) + " is overdue."}
	case s.FailedInRow == 0:
		return trouble{level: good}
	case s.FailedInRow < seriousFailures:
		level = warning
	}
	return trouble{level, withError(quoted(s.Name)+" failed "+record.AtLeast(s.FailedInRow)+inRow(s.FailedInRow), reason)}
}

func inRow(n int64) string {
	if n == 1 {
		return "the last time"
	}
	return fmt.Sprintf("%d times in a row", n)
}

func withError(text, reason string) string {
	if reason != "" {
		text += ": " + quotedUpTo(reason, mostErrorRunes)
	}
	return text + "."
}

// keepErrors takes the errors of failing schedules from an earlier record: a run in
// progress has none yet.
func (w *workRecord) keepErrors(before workRecord) {
	known := map[string]string{}
	for _, s := range before.Schedules {
		known[s.Name] = s.RunError
	}
	for i := range w.Schedules {
		s := &w.Schedules[i]
		switch {
		case s.FailedInRow == 0:
		case s.Last != nil && s.Last.Error != "":
			s.RunError = s.Last.Error
		default:
			s.RunError = known[s.Name]
		}
	}
}

// judge sets the levels of processors and schedules.
func (w *workRecord) judge() {
	for i := range w.Processors {
		w.Processors[i].Level = w.Processors[i].trouble().level
	}
	for i := range w.Schedules {
		w.Schedules[i].Level = w.Schedules[i].trouble().level
	}
}

// worst returns a sentence on the first failing processor or schedule at a level, and the
// number of the others. If none fails, the sentence is on the first one with dead
// letters. Otherwise it is empty.
func (w *workRecord) worst(level string) (text string, about job) {
	failing, letters := []troubledJob{}, []troubledJob{}
	for _, p := range w.Processors {
		switch t := p.trouble(); {
		case t.level != level || t.text == "":
		case t == p.letters():
			letters = append(letters, troubledJob{t.text, job{"processor", p.Name}})
		default:
			failing = append(failing, troubledJob{t.text, job{"processor", p.Name}})
		}
	}
	for _, s := range w.Schedules {
		if t := s.trouble(); t.level == level && t.text != "" {
			failing = append(failing, troubledJob{t.text, job{"schedule", s.Name}})
		}
	}
	for _, r := range w.Retention {
		if t := r.trouble(); t.level == level && t.text != "" {
			failing = append(failing, troubledJob{t.text, job{"retention", r.Rows}})
		}
	}
	switch {
	case len(failing) > 0:
		return first(failing, "more problem in Work.", "more problems in Work.")
	case len(letters) > 0:
		return first(letters, "other processor has dead letters too.", "other processors have dead letters too.")
	}
	return "", job{}
}

// troubledJob is a processor or a schedule with a sentence on its trouble.
type troubledJob struct {
	text string
	job  job
}

// first describes the first of jobs, and counts the others.
func first(all []troubledJob, one, several string) (text string, about job) {
	text = all[0].text
	if others := len(all) - 1; others > 0 {
		text += " " + count(others, one, several)
	}
	return text, all[0].job
}

// trouble returns what is wrong with the removal.
func (r retentionRecord) trouble() trouble {
	switch {
	case r.Errors > 0:
		return trouble{warning, withError(fmt.Sprintf("Old rows of %s cannot be removed", quoted(r.Rows)), r.LastError)}
	case r.Late > 0:
		return trouble{warning, fmt.Sprintf("Old rows of %s are kept for too long.", quoted(r.Rows))}
	}
	return trouble{level: good}
}
