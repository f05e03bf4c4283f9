package cli

import (
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/roles"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// Each term is shown with its end, and each change of a node.
func TestHistoryShowsTermsAndNodeChanges(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	one := place.run(t, "--role", "billing", "--name", "one")
	one.await("acquired")
	two := place.run(t, "--role", "billing", "--name", "two")
	two.await("acquire_failed")
	backend := place.installation(t).Backend
	wide := strings.Repeat("🦄", 200)
	request := tenure.Request{Kind: tenure.RequestStepDown, Role: "billing", By: wide + "\x1b[2J"}
	if err := backend.Request(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	two.await("acquired")
	two.signal(syscall.SIGKILL)
	one.await("acquired")

	var seen roles.TermHistoryRecord
	invoke(t, place.with("history", "-o", "json", "--since", "1h")...).want(t, console.ExitDone).decode(t, &seen)
	if len(seen.Terms) != 3 {
		t.Fatalf("%+v; want three terms", seen.Terms)
	}
	for i, want := range []roles.TermRecord{
		{NodeName: "one"},
		{NodeName: "two", Reason: string(history.EndCrashed)},
		{NodeName: "one", Reason: string(history.EndSteppedDown)},
	} {
		got := seen.Terms[i]
		if got.Role != "billing" || i > 0 && got.Term >= seen.Terms[i-1].Term || got.NodeName != want.NodeName || got.Reason != want.Reason ||
			time.Time(got.Ended).IsZero() != (i == 0) || (got.Vacant == nil) != (i == 2) || (got.Silent == nil) != (i == 2) {
			t.Errorf("%+v; want %+v", got, want)
		}
	}
	if seen.Terms[2].By != request.By {
		t.Errorf("%q asked for the step-down; want %q", seen.Terms[2].By, request.By)
	}
	if text := invoke(t, place.with("history")...).want(t, console.ExitDone).stdout; strings.Contains(text, "\x1b") || !strings.Contains(text, wide) {
		t.Errorf("the requester is not shown, or moves the cursor:\n%q", text)
	}

	var changes roles.NodeHistoryRecord
	invoke(t, place.with("history", "--nodes", "--node", seen.Terms[1].Node.String(), "-o", "json")...).want(t, console.ExitDone).decode(t, &changes)
	if n := len(changes.Changes); n < 2 || changes.Changes[0].Status != "dead" || changes.Changes[n-1].Previous != "" {
		t.Errorf("%+v; want them to end in death", changes.Changes)
	}
	checkDays(t, place)
	checkIncidents(t, place)
	invoke(t, place.with("node", "forget", "two")...).want(t, console.ExitDone)
	seen = roles.TermHistoryRecord{}
	invoke(t, place.with("history", "--node", "two", "-o", "json")...).want(t, console.ExitDone).decode(t, &seen)
	if len(seen.Terms) != 1 || seen.Terms[0].NodeName != "two" {
		t.Errorf("a node that is gone, by its name: %+v", seen.Terms)
	}
	text := invoke(t, place.with("history", "--role", "billing=42", "--node", "one", "-n", "1")...).want(t, console.ExitDone).stdout
	if lines := strings.Split(strings.TrimSpace(text), "\n"); len(lines) != 2 || !strings.Contains(lines[1], "billing") {
		t.Errorf("%s", text)
	}
}

// checkIncidents checks that the crash of a node and the move of its role are one
// incident.
func checkIncidents(t *testing.T, place place) {
	t.Helper()
	var seen roles.IncidentHistoryRecord
	invoke(t, place.with("history", "--incidents", "-o", "json")...).want(t, console.ExitDone).decode(t, &seen)
	if n := len(seen.Incidents); n != 2 || seen.Incidents[0].Kind != "crash" || seen.Incidents[1].Kind != "change" {
		t.Fatalf("%+v; want a crash after a step-down", seen.Incidents)
	}
	crash := seen.Incidents[0]
	if len(crash.Moves) != 1 || crash.Moves[0].From != "two" || crash.Moves[0].To != "one" || crash.Moves[0].Vacant == nil || time.Time(crash.Ended).IsZero() {
		t.Errorf("%+v; want the move of the role from two to one", crash)
	}
	began := time.Time(crash.Began)
	for until, want := range map[time.Time][]roles.IncidentRecord{began: seen.Incidents[1:], began.Add(time.Microsecond): seen.Incidents} {
		var bounded roles.IncidentHistoryRecord
		invoke(t, place.with("history", "--incidents", "--until", until.Format(time.RFC3339Nano), "-o", "json")...).want(t, console.ExitDone).decode(t, &bounded)
		if !reflect.DeepEqual(bounded.Incidents, want) {
			t.Errorf("until %v, the crash began at %v: %+v; want %+v", until, began, bounded.Incidents, want)
		}
	}
	text := invoke(t, place.with("history", "--incidents")...).want(t, console.ExitDone).stdout
	if !strings.Contains(text, "two crashed at ") || !strings.Contains(text, "Its role billing moved to one within ") {
		t.Errorf("%s", text)
	}
	var outages roles.OutageHistoryRecord
	invoke(t, place.with("history", "--outages", "-o", "json")...).want(t, console.ExitDone).decode(t, &outages)
	if outages.Outages == nil || len(outages.Outages) > 0 {
		t.Errorf("%+v; want an empty list of outages", outages.Outages)
	}
}

// checkDays checks that today's rows are in the totals although they are not rolled up
// yet.
func checkDays(t *testing.T, place place) {
	t.Helper()
	var days roles.DaysRecord[roles.RoleDayRecord]
	invoke(t, place.with("history", "--days", "roles", "--name", "billing", "--since", "48h", "-o", "json")...).want(t, console.ExitDone).decode(t, &days)
	var terms, unclean int64
	for _, d := range days.Days { // it may be midnight
		terms, unclean = terms+d.Terms, unclean+d.Unclean
	}
	if terms != 2 || unclean != 1 {
		t.Errorf("%+v; want two terms, one of them unclean", days.Days)
	}
	i := place.installation(t)
	i.Migrate("samples")
	i.Exec(`INSERT INTO {sample_days} (day, metric, digest, labels, kind, samples, total, least, greatest) VALUES
		('2026-01-01', 'tenure_node_load', 'x', '{}', 'gauge', 4, 2, 0.25, 1),
		('2026-01-01', 'tenure_leader_terms_total', 'y', '{"role": "billing"}', 'counter', 9, 12, NULL, NULL)`)
	for kind, want := range map[string]string{
		"roles": "DAY ROLE TERMS UNCLEAN", "nodes": "DAY JOINED LEFT DIED", "schedules": "DAY SCHEDULE SUCCEEDED",
		"metrics": "2026-01-01 tenure_leader_terms_total {\"role\":\"billing\"} counter 9 12 - - - " +
			"2026-01-01 tenure_node_load {} gauge 4 2 0.5 0.25 1",
	} {
		text := invoke(t, place.with("history", "--days", kind)...).want(t, console.ExitDone).stdout
		if got := strings.Join(strings.Fields(text), " "); !strings.Contains(got, want) {
			t.Errorf("%s: %s", kind, text)
		}
	}
}

// Bad input is reported in one line.
func TestHistoryRejectsBadInput(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	for arguments, want := range map[string]string{
		"--limit 0":                           "at least 1",
		"--since yesterday":                   "a time is written like",
		"--since 1h --until 2h":               "--until is before --since",
		"--nodes --role billing":              "exclude each other",
		"--outages --incidents":               "exclude each other",
		"--incidents --nodes":                 "omit --nodes",
		"--outages --days roles":              "omit --nodes, --node, --role and --days",
		"--role=":                             "the name is empty",
		"--role key:1:x=99999999999999999999": "out of range",
		"--days weeks":                        "there are roles, nodes",
		"--days roles --nodes":                "omit --nodes",
		"--days nodes --name a":               "omit --name",
		"--name billing":                      "use --role",
	} {
		got := invoke(t, place.with(append([]string{"history"}, strings.Fields(arguments)...)...)...).want(t, console.ExitUsage)
		if !strings.Contains(got.stderr, want) || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%s: %q; want it to say %q", arguments, got.stderr, want)
		}
	}
}
