package roles

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/exactly-one/tenure/cmd/tenure/internal/live"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/program/console"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.Local)

// render returns a page at a width, without colors.
func render(t *testing.T, width int, fill func(*console.Page)) string {
	t.Helper()
	text := (&console.Output{Format: console.FormatText, Color: console.ColorNever}).Render(width, fill)
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); width != console.Unlimited && n > width {
			t.Errorf("%d characters at %d: %s", n, width, line)
		}
	}
	return text
}

// At 80 columns the table of roles shows the role, its state, its leader and since when.
func TestStatusTableFitsItsWidth(t *testing.T) {
	t.Parallel()
	s := status{rows: [][]string{
		{"ROLE", "STATE", "NODE", "TERM", "SINCE", "LEASE", "PID", "CLIENT", "APPLICATION"},
		{"billing-invoices", "leads", "api-1.example", "1795426915928", "2026-11-23 09:41:55.928", "9.2s", "12345", "10.0.0.7", "tenure api-1.example session"},
		{"reports", "vacant", "-", "-", "-", "-", "-", "-", "-"},
	}}
	for width, want := range map[int]string{
		80: `
ROLE              STATE   NODE           TERM           SINCE
billing-invoices  leads   api-1.example  1795426915928  2026-11-23 09:41:55.928
reports           vacant  -              -              -
`,
		200: `
ROLE              STATE   NODE           TERM           SINCE                    LEASE  PID    CLIENT    APPLICATION
billing-invoices  leads   api-1.example  1795426915928  2026-11-23 09:41:55.928  9.2s   12345  10.0.0.7  tenure api-1.example session
reports           vacant  -              -              -                        -      -      -         -
`,
	} {
		if got := render(t, width, s.fillRoles); got != want {
			t.Errorf("at %d: got\n%swant\n%s", width, got, want)
		}
	}
}

// At 80 columns the history shows the role, the leader, the time and the reason, after
// the outages of the database.
func TestHistoryTableFitsItsWidth(t *testing.T) {
	t.Parallel()
	terms := []history.Term{
		{Role: "billing-invoices", Term: 1795426915928, NodeName: "api-2.example", Began: noon, PrecedingVacancy: 6700 * time.Microsecond, PrecedingSilence: 9400 * time.Millisecond},
		{
			Role: "billing-invoices", Term: 1795426915927, NodeName: "api-1.example", Began: noon.Add(-time.Hour), Ended: noon.Add(-7 * time.Millisecond),
			Reason: history.EndLeaseExpired, By: "operator@bastion.example.com", PrecedingVacancy: -1, PrecedingSilence: -1,
		},
	}
	outage := history.Outage{Began: noon.Add(-40 * time.Second), Ended: noon.Add(-2 * time.Second), Roles: []string{"a", "b"}}
	outages := []string{outageSentence(outage, noon.Add(2*time.Minute))}
	for width, want := range map[int]string{
		80: `No node reached the database for 38 s, from 2026-11-23T11:59:20.000Z until
2026-11-23T11:59:58.000Z, 2 min 2 s ago; 2 roles stood still.

ROLE              NODE           BEGAN                     REASON         VACANT
billing-invoices  api-2.example  2026-11-23T12:00:00.000Z  -              6.7ms
billing-invoices  api-1.example  2026-11-23T11:00:00.000Z  lease_expired  -
`,
		200: `No node reached the database for 38 s, from 2026-11-23T11:59:20.000Z until 2026-11-23T11:59:58.000Z, 2 min 2 s ago; 2 roles stood still.

ROLE              TERM           NODE           BEGAN                     ENDED                     LASTED      REASON         BY                            VACANT  SILENT
billing-invoices  1795426915928  api-2.example  2026-11-23T12:00:00.000Z  -                         2m0s        -              -                             6.7ms   9.4s
billing-invoices  1795426915927  api-1.example  2026-11-23T11:00:00.000Z  2026-11-23T11:59:59.993Z  59m59.993s  lease_expired  operator@bastion.example.com  -       -
`,
	} {
		got := render(t, width, func(page *console.Page) { fillTerms(page, terms, outages, noon.Add(2*time.Minute)) })
		if got != want {
			t.Errorf("at %d: got\n%swant\n%s", width, got, want)
		}
	}
}

// While the database does not answer, the age of the last answer replaces the summary,
// and nothing is green.
func TestStaleStatusIsNamedWithItsAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // an age in seconds, in which no time passes
		out := &console.Output{Format: console.FormatText, Color: console.ColorAlways}
		shown := readingOf(led("a"))
		shown.Value.rows = [][]string{{"ROLE", "STATE"}, {"a", "leads"}}
		fresh := out.Render(80, func(page *console.Page) { fillReading(page, shown) })
		if !strings.HasPrefix(fresh, "The role a is led.\nas of ") || !strings.Contains(fresh, "\x1b[32mleads") {
			t.Errorf("fresh: %q", fresh)
		}
		shown.Err = errDown
		shown.At = time.Now().Add(-12 * time.Second)
		stale := out.Render(80, func(page *console.Page) { fillReading(page, shown) })
		if !strings.HasPrefix(stale, "as of ") || !strings.Contains(stale, "(12 s ago): the database does not answer: no route") ||
			strings.Contains(stale, "is led") || strings.Contains(stale, "\x1b") || !strings.Contains(stale, "leads") {
			t.Errorf("stale: %q", stale)
		}
	})
}

var errDown = errors.New("no route")

func readingOf(holders []history.RoleStatus) live.Reading[status] {
	reading := live.Reading[status]{At: time.Now()}
	reading.Value.summary.takeRoles(holders, false)
	return reading
}
