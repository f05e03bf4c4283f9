package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
)

const rareSchedule = `name = "rare"` + "\n" + `schedule = "30 2 29 2 *"` + "\n" + `command = "true"`

// Schedules change, are added and removed while a node runs them, and another
// reading of the file does not undo that.
func TestCronChangesSchedulesOfRunningNode(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	invoke(t, place.with("migrate")...).want(t, console.ExitDone)
	node := cronNode(t, place.schedules(t, rareSchedule), "api-1")
	eventually(t, "the schedule", func() bool { all := place.schedulesOf(t); return len(all) == 1 && all[0].Loaded })
	on := func(args ...string) result {
		t.Helper()
		return invoke(t, place.with(append([]string{"cron"}, args...)...)...).want(t, console.ExitDone)
	}
	var s record.Schedule
	on("change", "rare", "--tz", "Asia/Tokyo", "--timeout", "90s", "--jitter", "0", "--catch-up", "latest", "--catch-up-limit", "7", "-o", "json").decode(t, &s)
	if s.Timezone != "Asia/Tokyo" || s.TimeoutSeconds != 90 || s.CatchUp != cron.CatchUpLatest || s.CatchUpLimit != 7 || s.Expression != "30 2 29 2 *" {
		t.Errorf("%+v", s)
	}
	if text := on("add", "often", "--job", "rare", "--expr", "* * * * * *", "--by", "ann").stdout; text != "often is added\n" {
		t.Errorf("%q", text)
	}
	eventually(t, "a run", func() bool { return len(place.history(t, "often")) > 0 })
	node.awaitLog("schedule=often")
	if text := on("reset", "rare").stdout; text != "rare is as its program declares\n" {
		t.Errorf("%q", text)
	}
	eventually(t, "the file's settings", func() bool {
		all := place.schedulesOf(t)
		return len(all) == 2 && all[1].Timezone == "UTC" && all[1].Override == nil && all[0].Override.Job == "rare"
	})
	if text := on("remove", "often", "--yes").stdout; text != "often is removed\n" {
		t.Errorf("%q", text)
	}
	if text := invoke(t, place.with("audit")...).want(t, console.ExitDone).stdout; !strings.Contains(text, "ann") || !strings.Contains(text, `{"job":"rare","expression":"* * * * * *"}`) {
		t.Errorf("%s", text)
	}
	for want, args := range map[string][]string{
		"--expr is empty":                      {"change", "rare", "--expr", ""},
		"between 1 and 100000":                 {"change", "rare", "--catch-up-limit", "0"},
		"no change was given for the schedule": {"change", "rare"},
		`"Mars/Olympus" is unk`:                {"change", "rare", "--tz", "Mars/Olympus"},
		`overlap of rare is "no"`:              {"change", "rare", "--overlap", "no"},
		`did you mean "rare"?`:                 {"change", "raer", "--tz", "UTC"},
		"has no job":                           {"add", "new", "--expr", "@daily"},
		"has no expression":                    {"add", "new", "--job", "rare"},
		"already a schedule rare":              {"add", "rare", "--job", "rare", "--expr", "@daily"},
		"one schedule, but got 2":              {"add", "a", "b"},
		"name the schedule; see t":             {"reset"},
	} {
		got := invoke(t, place.with(append([]string{"cron"}, args...)...)...).want(t, console.ExitUsage)
		if strings.Count(got.stderr, "\n") != 1 || !strings.Contains(got.stderr, want) || got.stdout != "" {
			t.Errorf("%q: %q, want %q", args, got.stderr, want)
		}
	}
}

// tenure serve changes schedules for clients with the token.
func TestServeChangesSchedules(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	cronNode(t, place.schedules(t, rareSchedule), "api-1")
	const token = "0123456789abcdef0123456789abcdef"
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url := served(launch(t, place.with("serve", "--listen", ":0", "--token-file", file, "--log-level", "info")...))
	eventually(t, "the schedule", func() bool {
		status, answer := fetch(t, http.MethodGet, url+"/v1/schedules", "")
		return status == http.StatusOK && strings.Contains(answer, `"schedule":"rare"`)
	})
	if status, answer := fetch(t, http.MethodPost, url+"/v1/schedules/rare/trigger", ""); status != http.StatusUnauthorized {
		t.Errorf("without the token: %d, %s", status, answer)
	}
	status, answer := fetch(t, http.MethodPost, url+"/v1/schedules/rare/trigger", "", "Authorization", "Bearer "+token)
	if status != http.StatusAccepted {
		t.Fatalf("%d, %s", status, answer)
	}
	eventually(t, "the run", func() bool {
		runs := place.history(t, "rare")
		return len(runs) == 1 && runs[0].State == cron.Succeeded && strings.HasPrefix(runs[0].RequestedBy, "HTTP from 127.0.0.1:")
	})
}
