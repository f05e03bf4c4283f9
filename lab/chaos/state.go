//go:build linux

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/exactly-one/tenure/internal/docpage"
	"github.com/exactly-one/tenure/lab/chaos/check"
	"github.com/exactly-one/tenure/lab/chaos/record"
	"github.com/exactly-one/tenure/lab/chaos/script"
)

// figures add up several runs.
type figures struct {
	Runs       int                      `json:"runs"`
	Last       time.Time                `json:"last"`
	Servers    []string                 `json:"servers"` // the versions
	Duration   time.Duration            `json:"duration"`
	Faults     map[string]int           `json:"faults"`
	Failed     int                      `json:"faults_not_made"`
	Busy       time.Duration            `json:"machine_too_busy"`
	Terms      int                      `json:"terms"`
	Writes     int                      `json:"writes"`
	Rejected   int                      `json:"fenced_writes"`
	Unknown    int                      `json:"without_answer"`
	Ticks      int                      `json:"ticks"`
	Events     int                      `json:"events"`
	Messages   int                      `json:"messages"`
	Violations map[string]int           `json:"violations"`
	Excused    int                      `json:"excused_overlaps"`
	Longest    time.Duration            `json:"longest_excused_overlap"`
	Vacancies  map[string]int           `json:"vacancies"`
	Worst      map[string]time.Duration `json:"worst_vacancies"`
}

func newFigures() *figures {
	return &figures{Faults: map[string]int{}, Violations: map[string]int{}, Vacancies: map[string]int{}, Worst: map[string]time.Duration{}}
}

// add adds a run.
func (f *figures) add(h *record.History, v *check.Verdict, now time.Time) {
	f.Runs++
	f.Last = now.UTC().Truncate(time.Second)
	f.Duration += time.Duration(h.End - h.Start)
	made := faultCounts(h)
	for kind, n := range made {
		f.Faults[kind] += n
	}
	for _, fault := range h.Faults {
		switch {
		case fault.Kind == check.Overload:
			f.Busy += time.Duration(fault.To - fault.From)
		case fault.Failed != "":
			f.Failed++
		}
	}
	f.Terms += len(h.Begins)
	f.Writes += len(h.Writes)
	f.Rejected += h.Rejected
	f.Unknown += h.Unknown
	f.Ticks += len(h.Ticks)
	f.Events += len(h.Events)
	f.Messages += len(h.Deliveries)
	for _, violation := range v.Violations {
		f.Violations[violation.Kind]++
	}
	for _, overlap := range v.Excused {
		f.Excused++
		f.Longest = max(f.Longest, overlap)
	}
	for _, gap := range v.Gaps {
		f.Vacancies[gap.Kind]++
		f.Worst[gap.Kind] = max(f.Worst[gap.Kind], gap.Took)
	}
}

// report says in some lines what a run has shown.
func report(h *record.History, v *check.Verdict) string {
	f := newFigures()
	f.add(h, v, time.Now())
	text := f.summary() + "\n" + f.table()
	if len(v.Gaps) > 0 {
		longest := slices.MaxFunc(v.Gaps, func(a, b check.Gap) int { return cmp.Compare(a.Took, b.Took) })
		text += fmt.Sprintf("\nThe longest vacancy: %s, for %v from %v, with these faults: %s\n",
			longest.Role, longest.Took.Round(time.Millisecond), longest.From, longest.Met)
	}
	return text
}

// summary describes the runs and their findings.
func (f *figures) summary() string {
	var text strings.Builder
	fmt.Fprintf(&text, "Last run: %s. Runs: %d, which took %v. Faults: %d; not possible at their time: %d. Violations: %d.\n\n",
		f.Last.Format(time.DateOnly), f.Runs, f.Duration.Round(time.Second), total(f.Faults), f.Failed, total(f.Violations))
	fmt.Fprintf(&text, "- %d terms; %d fenced writes acknowledged, %d rejected; %d statements without an answer\n", f.Terms, f.Writes, f.Rejected, f.Unknown)
	fmt.Fprintf(&text, "- %d starts of scheduled jobs, %d events in the view, %d deliveries of webhooks\n", f.Ticks, f.Events, f.Messages)
	fmt.Fprintf(&text, "- %d overlaps that [guarantees](../../docs/explanation/guarantees.md#what-is-not-promised) allows after sessions were terminated, the longest of %v\n", f.Excused, f.Longest.Round(time.Millisecond))
	if f.Busy > 0 {
		fmt.Fprintf(&text, "- for %v the machine was so busy that the server needed more than a second to answer\n", f.Busy.Round(time.Second))
	}
	return text.String()
}

// line summarizes the runs in a sentence. It shows violations in bold.
func (f *figures) line() string {
	violations := "0"
	if n := total(f.Violations); n > 0 {
		violations = fmt.Sprintf("**%d**", n)
	}
	servers := strings.ReplaceAll(strings.Join(f.Servers, ", "), ", PostgreSQL ", ", ")
	return fmt.Sprintf("On %s: %d faults of %d kinds in %v (runs: %d), %d terms and %d acknowledged fenced writes; violations: %s (%s, `make chaos`).",
		servers, total(f.Faults), len(f.Faults), f.Duration.Round(time.Second), f.Runs, f.Terms, f.Writes, violations, f.Last.Format(time.DateOnly))
}

// table shows the faults and the longest vacancy that followed each, in Markdown.
func (f *figures) table() string {
	var text strings.Builder
	text.WriteString("| fault | layer | what happens | made | vacancies | longest vacancy |\n|---|---|---|---|---|---|\n")
	for _, k := range script.Kinds {
		if f.Faults[k.Name]+f.Vacancies[k.Name] == 0 {
			continue
		}
		worst := "–"
		if f.Vacancies[k.Name] > 0 {
			worst = fmt.Sprintf("%.1f s", f.Worst[k.Name].Seconds())
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s | %d | %d | %s |\n", k.Name, k.Layer, k.Does, f.Faults[k.Name], f.Vacancies[k.Name], worst)
	}
	return text.String()
}

// saveRun adds a run to the state file, and writes the page.
func (c *command) saveRun(h *record.History, v *check.Verdict) error {
	f := newFigures()
	if c.state != "" {
		content, err := os.ReadFile(c.state)
		switch {
		case err == nil:
			err = json.Unmarshal(content, f)
		case errors.Is(err, fs.ErrNotExist):
			err = nil
		}
		if err != nil {
			return err
		}
	}
	f.add(h, v, time.Now())
	if !slices.Contains(f.Servers, c.server) {
		f.Servers = append(f.Servers, c.server)
		slices.Sort(f.Servers)
	}
	var failed error
	if c.state != "" {
		failed = writeJSON(c.state, f)
	}
	if c.page != "" {
		failed = errors.Join(failed, f.writePage(c.page))
	}
	if c.summary != "" {
		failed = errors.Join(failed, docpage.Update(c.summary, "chaos", func(string) string { return f.line() }))
	}
	return failed
}

func writeJSON(path string, value any) error {
	content, err := json.MarshalIndent(value, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(content, '\n'), 0o644) //nolint:gosec // it is for reading
}

func (f *figures) writePage(path string) error {
	return docpage.Update(path, "chaos", func(string) string { return f.summary() + "\n" + f.table() })
}
