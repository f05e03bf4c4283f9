package observer

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// agreed is how far a shown time and the truth may be apart on a machine at rest.
const agreed = 50 * time.Millisecond

// row is a case: something that is shown, and what is true.
type row struct{ scenario, where, what, shown, truth, bound string }

// table has all cases of all scenarios.
type table struct {
	mu   sync.Mutex
	rows []row
	off  int // cases that differ
}

func (t *table) add(r row, differs bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = append(t.rows, r)
	if differs {
		t.off++
	}
}

// cell shortens a text to what fits into a table.
func cell(text string) string {
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "|", "/")), " ")
	if runes := []rune(text); len(runes) > 160 {
		return string(runes[:159]) + "…"
	}
	return text
}

// String returns the table as Markdown.
func (t *table) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.SortStableFunc(t.rows, func(a, b row) int { return strings.Compare(a.scenario, b.scenario) })
	var text strings.Builder
	text.WriteString("| scenario | read from | what | shown | true | bound |\n|---|---|---|---|---|---|\n")
	for _, r := range t.rows {
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s | %s |\n", r.scenario, r.where, cell(r.what), cell(r.shown), cell(r.truth), r.bound)
	}
	return fmt.Sprintf("%d cases, %d differ\n%s", len(t.rows), t.off, text.String())
}

// compare adds a case. The test fails if both differ.
func (s *scene) compare(where, what, shown, truth, bound string, same bool) {
	s.Helper()
	s.cases.add(row{s.name, where, what, shown, truth, bound}, !same)
	if !same {
		s.Errorf("%s, %s: shown is %s; true is %s (%s)", where, what, shown, truth, bound)
	}
}

// equal compares values that must be equal.
func (s *scene) equal(where, what string, shown, truth any) {
	s.Helper()
	a, b := fmt.Sprint(shown), fmt.Sprint(truth)
	s.compare(where, what, a, b, "equal", a == b)
}

// says compares a text with a pattern, which matches all of it.
func (s *scene) says(where, what, text, pattern string) {
	s.Helper()
	s.compare(where, what, text, pattern, "pattern", regexp.MustCompile("^(?s:"+pattern+")$").MatchString(text))
}

// lasted is a duration that is known with a least and a greatest value.
type lasted struct{ least, greatest time.Duration }

func (l lasted) String() string { return fmt.Sprintf("%v to %v", l.least, l.greatest) }

// within allows for a duration that is less exact.
func (l lasted) within(d time.Duration) lasted { return lasted{l.least - d, l.greatest + d} }

// metric returns the value of a metric, as text.
func metric(figures, series string) string {
	for line := range strings.Lines(figures) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return "missing"
}

// between returns for how long something lasted that began within one span and ended
// within another.
func between(began, ended span) lasted {
	return lasted{max(0, ended.from.Sub(began.to)), max(0, ended.to.Sub(began.from))}
}

// long compares a duration. during is when the machine may have delayed what was measured.
func (s *scene) long(where, what string, shown time.Duration, truth lasted, during span) {
	s.Helper()
	bound := agreed + s.pulse.delay(during)
	same := shown >= truth.least-bound && shown <= truth.greatest+bound
	s.compare(where, what, shown.Round(10*time.Microsecond).String(), truth.String(), bound.Round(time.Millisecond).String(), same)
}

// seconds compares a duration in seconds, which must be known.
func (s *scene) seconds(where, what string, shown *float64, truth lasted, during span) {
	s.Helper()
	if shown == nil {
		s.compare(where, what, "unknown", truth.String(), "known", false)
		return
	}
	s.long(where, what, time.Duration(*shown*float64(time.Second)), truth, during)
}

// at compares a time.
func (s *scene) at(where, what string, shown time.Time, truth span) {
	s.Helper()
	bound := agreed + s.pulse.delay(truth)
	same := !shown.Before(truth.from.Add(-bound)) && !shown.After(truth.to.Add(bound))
	s.compare(where, what, clock(shown), clock(truth.from)+" to "+clock(truth.to), bound.Round(time.Millisecond).String(), same)
}

func clock(at time.Time) string { return at.UTC().Format("15:04:05.000") }

// moment is the pattern of a time in a sentence.
const moment = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d)`

// brief is the pattern of a duration in a sentence.
const brief = `(\d+ µs|\d+(?:\.\d)? ms|\d+\.\d s|\d+ min(?: \d+ s)?)`

// age is the pattern of an age in a verdict.
const age = `(?:less than 1 s|\d+ s)`

// duration reads a duration from a sentence: brief's forms.
func (s *scene) duration(text string) time.Duration {
	s.Helper()
	d, err := time.ParseDuration(strings.NewReplacer(" ", "", "min", "m").Replace(text))
	if err != nil {
		s.Fatal(err)
	}
	return d
}

// part returns the text that the first group of a pattern matches.
func part(text, pattern string) string {
	if found := regexp.MustCompile(pattern).FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

// pulse measures how late the machine serves a process: how late a goroutine is woken, and how
// long the database takes for a statement that does nothing.
type pulse struct {
	mu    sync.Mutex
	lates []late
}

type late struct {
	at   time.Time
	late time.Duration
}

// beat is the interval of the pulse, and what a delay must exceed to count.
const beat = 10 * time.Millisecond

// run measures until done is closed.
func (p *pulse) run(conn *pgx.Conn, done <-chan struct{}) {
	for next := time.Now().Add(beat); ; next = time.Now().Add(beat) {
		select {
		case <-done:
			return
		case <-time.After(time.Until(next)):
		}
		_, _ = conn.Exec(context.Background(), "SELECT") // the server of all tests runs
		if lag := time.Since(next); lag > beat {
			p.mu.Lock()
			p.lates = append(p.lates, late{next, lag})
			p.mu.Unlock()
		}
	}
}

// delay returns the sum of the delays in a span, and shortly before and after it: a process
// may wait at each of its steps.
func (p *pulse) delay(during span) (sum time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lates {
		if l.at.Add(l.late).After(during.from.Add(-agreed)) && l.at.Before(during.to.Add(agreed)) {
			sum += l.late
		}
	}
	return sum
}
