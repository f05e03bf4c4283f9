package cli

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
)

// The ticks are printed without a database, and exactly.
func TestCronNextPrintsTicksWithoutDatabase(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
	}{
		// 2026-03-08 2:30 does not exist, 2026-11-01 1:30 exists twice.
		{[]string{"--expr", "30 2 * * *", "--tz", "America/New_York", "--from", "2026-03-07T00:00:00-05:00", "-n", "3", "-o", "json"},
			`{"next":["2026-03-07T02:30:00-05:00","2026-03-08T03:00:00-04:00","2026-03-09T02:30:00-04:00"]}` + "\n"},
		{[]string{"--expr", "30 1 * * *", "--tz", "America/New_York", "--from", "2026-10-31T12:00:00-04:00", "--count", "2"},
			"2026-11-01T01:30:00-04:00\n2026-11-02T01:30:00-05:00\n"},
		{[]string{"--expr", "@every 90m", "--from", "2026-01-01T00:00:00Z", "-n", "1", "-o", "json"}, `{"next":["2026-01-01T01:30:00Z"]}` + "\n"},
		{[]string{"--expr", "*/20 * * * * *", "--from", "2026-01-01T01:00:00.5+01:00", "-n", "1", "-o", "json"}, `{"next":["2026-01-01T00:00:20Z"]}` + "\n"},
	} {
		got := invoke(t, append([]string{"cron", "next"}, test.args...)...).want(t, console.ExitDone)
		if got.stdout != test.want || got.stderr != "" {
			t.Errorf("%q: %q, %q; want %q", test.args, got.stdout, got.stderr, test.want)
		}
	}
	if got := invoke(t, "cron", "next", "--expr", "@hourly").want(t, console.ExitDone); strings.Count(got.stdout, "\n") != 5 {
		t.Errorf("%q", got.stdout)
	}
	// The program contains the time zones.
	got := invokeWith(t, []string{"ZONEINFO=/nowhere"}, "cron", "next", "--expr", "0 0 1 1 *", "--tz", "Asia/Tokyo", "-n", "1").want(t, console.ExitDone)
	if !strings.HasSuffix(got.stdout, "-01-01T00:00:00+09:00\n") {
		t.Errorf("%q", got.stdout)
	}
}

// Bad input is reported in one line, with exit code 2.
func TestCronRejectsBadInput(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	on := place.with
	for want, args := range map[string][]string{
		"never ticks":               {"next", "--expr", "0 0 30 2 *"},
		"fields is 1":               {"next", "--expr", "often"},
		`the schedule ""`:           {"next", "--expr", ""},
		`"Mars/Olympus" is unknown`: {"next", "--expr", "@daily", "--tz", "Mars/Olympus"},
		"differs between nodes":     {"next", "--expr", "@daily", "--tz", "Local"},
		"time in RFC 3339":          {"next", "--expr", "@daily", "--from", "yesterday"},
		"at least 1":                {"next", "--expr", "@daily", "-n", "0"},
		"between 0 and 10000":       {"next", "--expr", "@daily", "-n", "10001"},
		"not both":                  {"next", "--expr", "@daily", "backup"},
		"--tz requires --expr":      on("next", "backup", "--tz", "UTC"),
		"name the schedule":         on("next"),
		"one schedule, but got 2":   on("trigger", "a", "b"),
		"--by is empty":             on("pause", "a", "--by", ""),
		"ask for confirmation here": on("remove", "a"),
		`no command "lst" in`:       {"lst"},
		"no database is named":      {"list"},
		"no tables":                 on("list"),
		"this database uses leases": {"list", "--dsn", "mysql://u@h/d"},
	} {
		got := invoke(t, append([]string{"cron"}, args...)...).want(t, console.ExitUsage)
		if strings.Count(got.stderr, "\n") != 1 || !strings.Contains(got.stderr, want) || got.stdout != "" {
			t.Errorf("%q: %q, want %q", args, got.stderr, want)
		}
	}
	invoke(t, "cron", "list", "--dsn", "postgres://127.0.0.1:1/nowhere").want(t, console.ExitDatabase)
	invoke(t, place.with("migrate")...).want(t, console.ExitDone)
	got := invoke(t, place.with("cron", "pause", "backup")...).want(t, console.ExitUsage)
	if !strings.Contains(got.stderr, "is registered yet") {
		t.Errorf("%q", got.stderr)
	}
}

// Schedules are listed, paused, resumed and removed, and the requester is
// recorded.
func TestCronCommandsRecordRequester(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	path := place.schedules(t,
		`name = "backup"`+"\n"+`schedule = "30 2 29 2 *"`+"\n"+`timezone = "Europe/Berlin"`+"\n"+`command = "true"`+"\n"+`catch_up = "latest"`+"\n"+
			`policy = "at-least-once"`+"\n"+`timeout = "1h"`,
		`name = "often"`+"\n"+`schedule = "* * * * * *"`+"\n"+`command = "true"`)
	node := cronNode(t, path, "api-1")
	node.awaitLog("the command has ended")
	on := func(args ...string) result {
		t.Helper()
		return invoke(t, place.with(append([]string{"cron"}, args...)...)...).want(t, console.ExitDone)
	}

	all := place.schedulesOf(t)
	if len(all) != 2 || all[0].Schedule != "backup" || all[1].Schedule != "often" {
		t.Fatalf("%+v", all)
	}
	if s := all[0]; s.Status != "active" || s.Expression != "30 2 29 2 *" || s.Timezone != "Europe/Berlin" || s.CatchUp != "latest" ||
		s.Policy != "at_least_once" || s.Overlap != "skip" || s.TimeoutSeconds != 3600 || s.Role != "jobs" || !s.Loaded || s.Last != nil || s.Missed != 0 {
		t.Errorf("%+v", s)
	}
	if s := all[1]; s.Last == nil || s.Last.NodeName != "api-1" || s.Policy != "at_most_once" || s.Failures != 0 {
		t.Errorf("%+v", s)
	}
	if text := on("list").stdout; !strings.Contains(text, "backup    active  30 2 29 2 *  Europe/Berlin  20") || !strings.Contains(text, "-02-29T02:30:00+01:00") {
		t.Errorf("%s", text)
	}
	if text := on("history", "-n", "5").stdout; !strings.Contains(text, "SCHEDULE ") || !strings.Contains(text, "often") {
		t.Errorf("the history of all schedules:\n%s", text)
	}
	if text := on("history", "often").stdout; !strings.Contains(text, "succeeded") || !strings.Contains(text, "api-1") {
		t.Errorf("%s", text)
	}
	if text := on("next", "backup", "-n", "2").stdout; strings.Count(text, "-02-29T02:30:00+01:00\n") != 2 {
		t.Errorf("%s", text)
	}
	var next record.ScheduleTicks
	on("next", "backup", "-n", "1", "-o", "json").decode(t, &next)
	if next.Schedule != "backup" || len(next.Next) != 1 {
		t.Errorf("%+v", next)
	}

	var paused record.PausedSchedule
	on("pause", "often", "--by", "ann", "-o", "json").decode(t, &paused)
	claimed := len(place.history(t, "often"))
	if paused != (record.PausedSchedule{Schedule: "often", Paused: true}) || place.schedulesOf(t)[1].Status != "paused" {
		t.Errorf("%+v", paused)
	}
	if text := on("next", "often").stdout; text != "none: the schedule is paused\n" {
		t.Errorf("%q", text)
	}
	place.awaitRun(t, "often", place.trigger(t, "often")) // also while it is paused
	if n := len(place.history(t, "often")); n != claimed+1 {
		t.Errorf("%d runs, %d when it was paused", n, claimed)
	}
	if text := on("resume", "often", "--by", "ann").stdout; text != "often ticks\n" {
		t.Errorf("%q", text)
	}

	for command, code := range map[string]int{"pause": console.ExitUsage, "history": console.ExitUsage, "trigger": console.ExitUsage} {
		if got := invoke(t, place.with("cron", command, "bakcup")...).want(t, code); got.stderr != "tenure: there is no schedule \"bakcup\"; did you mean \"backup\"?\n" {
			t.Errorf("%s: %q", command, got.stderr)
		}
	}
	if got := invoke(t, place.with("cron", "remove", "often", "--yes")...).want(t, console.ExitUsage); !strings.Contains(got.stderr, "remove it from the program first") {
		t.Errorf("%q", got.stderr)
	}
	if got := offered(t, append(place.with("cron", "pause"), "")...); !slices.Equal(got, []string{"backup", "often"}) {
		t.Errorf("completion: %q", got)
	}
	node.signal(syscall.SIGTERM)
	node.exit()
	if s := place.schedulesOf(t)[0]; s.Status != "unled" || s.Loaded || time.Time(s.Next).IsZero() {
		t.Errorf("%+v", s)
	}
	if text := on("remove", "often", "--yes", "--by", "bob").stdout; text != "often is removed\n" {
		t.Errorf("%q", text)
	}
	var lines []string
	for _, a := range place.actions(t, "often") {
		lines = append(lines, a.By+" "+a.Name+" "+a.Action)
	}
	if !slices.Equal(lines, []string{"bob often remove", "ann often resume", "ann often trigger", "ann often pause"}) {
		t.Errorf("%q", lines)
	}
}

// actions returns the actions of operators on an object with this name, newest first.
func (p place) actions(t *testing.T, name string) []record.AuditAction {
	t.Helper()
	var audit record.Audit
	invoke(t, p.with("audit", name, "-o", "json")...).want(t, console.ExitDone).decode(t, &audit)
	return audit.Actions
}
