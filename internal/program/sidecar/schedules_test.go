package sidecar

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/internal/testkit"
)

const never = "0 0 29 2 *" // but for a test on such a day

// runSchedules runs schedules whose job reports the schedule of each run, on a node
// that leads them until the test ends.
func runSchedules(t *testing.T, i *postgrestest.Installation, names ...string) <-chan string {
	t.Helper()
	runs := make(chan string, 1000)
	scheduler, err := cron.New(i.Node("worker", tenure.Config{Logger: silent}), i.Pool, cron.Config{PollInterval: time.Hour, Role: tenure.NamedRole("jobs")})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		err := scheduler.Add(cron.Schedule{Name: name, Expression: never, Job: func(_ context.Context, run cron.Run) error {
			runs <- run.Schedule
			_, err := io.WriteString(run.Output(), "ran "+run.Schedule)
			return err
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	postgrestest.Run(t, scheduler.Run)
	admin := cron.NewAdmin(i.Backend, i.Pool)
	i.Await("the schedules", func() bool {
		all, err := admin.List(t.Context())
		return err == nil && len(all) == len(names) && all[0].Loaded
	})
	return runs
}

// awaitSchedule waits for a run of a schedule.
func awaitSchedule(t *testing.T, runs <-chan string, name string) {
	t.Helper()
	limit := time.After(testkit.Patience)
	for {
		select {
		case run := <-runs:
			if run == name {
				return
			}
		case <-limit:
			t.Fatalf("%s did not run", name)
		}
	}
}

// TestSchedulesAreChangedOverHTTP: a schedule is listed, triggered, paused, changed, reset and
// removed, one is added, and each change has the address that asked for it.
func TestSchedulesAreChangedOverHTTP(t *testing.T) {
	t.Parallel()
	i := postgrestest.Unmigrated(t)
	runs := runSchedules(t, i, "back up/all", "other")
	h := workHandler(t, i, i.Pool)
	path := "/v1/schedules/" + url.PathEscape("back up/all")
	post := func(action string) string {
		t.Helper()
		r := call(t, h, http.MethodPost, path+action, "", authorized...)
		if r.status >= 300 {
			t.Fatalf("%s: %d %s", action, r.status, r.body)
		}
		return r.body
	}
	show := func() record.Schedule {
		t.Helper()
		return decode[record.Schedule](t, call(t, h, http.MethodGet, path, "").want(t, 200).body)
	}
	patch := func(body string) record.Schedule {
		t.Helper()
		return decode[record.Schedule](t, call(t, h, http.MethodPatch, path, body, authorized...).want(t, 200).body)
	}

	all := decode[record.Schedules](t, call(t, h, http.MethodGet, "/v1/schedules", "").want(t, 200).body).Schedules
	if len(all) != 2 || all[0].Schedule != "back up/all" || all[0].Status != "active" || all[0].Override != nil || all[0].Last != nil {
		t.Errorf("the schedules are %+v", all)
	}
	run := decode[record.TriggeredSchedule](t, post("/trigger"))
	awaitSchedule(t, runs, "back up/all")
	history := decode[record.Runs](t, call(t, h, http.MethodGet, path+"/runs?count=5", "").want(t, 200).body)
	if len(history.Runs) != 1 || history.Runs[0].Run != run.Run || history.Runs[0].RequestedBy != askedOverHTTP {
		t.Errorf("the runs are %+v", history)
	}
	i.Await("the output of the run", func() bool {
		r := decode[record.RunWithOutput](t, call(t, h, http.MethodGet, fmt.Sprintf("/v1/schedule-runs/%d", run.Run), "", authorized...).want(t, 200).body)
		return r.Run.Run == run.Run && r.Output == "ran back up/all" && r.OutputBytes == len(r.Output)
	})
	if p := decode[record.PausedSchedule](t, post("/pause")); !p.Paused || show().Status != "paused" {
		t.Errorf("%+v", p)
	}
	if p := decode[record.PausedSchedule](t, post("/resume")); p.Paused || show().Status != "active" {
		t.Errorf("%+v", p)
	}
	s := patch(`{"expression": "@every 1s", "timezone": "Asia/Tokyo", "jitter_seconds": 0.001, "overlap": "queue"}`)
	if s.Expression != "@every 1s" || s.Timezone != "Asia/Tokyo" || s.JitterSeconds != 0.001 || s.Override == nil || s.Override.Overlap != cron.OverlapQueue {
		t.Errorf("the changed schedule is %+v", s)
	}
	awaitSchedule(t, runs, "back up/all")
	ticks := decode[record.ScheduleTicks](t, call(t, h, http.MethodGet, path+"/next?count=3", "").want(t, 200).body)
	if len(ticks.Next) != 3 || !strings.HasSuffix(ticks.Next[0], "+09:00") {
		t.Errorf("the next ticks are %+v", ticks)
	}
	post("/reset")
	i.Await("what the program declares", func() bool { s := show(); return s.Expression == never && s.Override == nil })

	added := decode[record.Schedule](t, call(t, h, http.MethodPost, "/v1/schedules",
		`{"schedule": "extra", "job": "back up/all", "expression": "* * * * * *"}`, authorized...).want(t, 201).body)
	if added.Schedule != "extra" || added.Override.Job != "back up/all" {
		t.Errorf("the added schedule is %+v", added)
	}
	awaitSchedule(t, runs, "extra")
	removed := decode[record.RemovedSchedule](t, call(t, h, http.MethodDelete, "/v1/schedules/extra", "", authorized...).want(t, 200).body)
	call(t, h, http.MethodGet, "/v1/schedules/extra", "").refused(t, 404, codeUnknownSchedule)
	if removed.Removed != "extra" {
		t.Errorf("%+v", removed)
	}

	var actions []string
	for _, c := range decode[record.Audit](t, call(t, h, http.MethodGet, "/v1/audit?count=100", "").want(t, 200).body).Actions {
		actions = append(actions, c.Name+" "+c.Action)
		if c.By != askedOverHTTP {
			t.Errorf("%+v was not asked over HTTP", c)
		}
	}
	want := "extra remove,extra add,back up/all reset,back up/all change,back up/all resume,back up/all pause,back up/all trigger"
	if got := strings.Join(actions, ","); got != want {
		t.Errorf("the changes are %q, want %q", got, want)
	}
}

// TestSchedulesRefuseBadRequests: each refusal has its status, its code and one
// sentence.
func TestSchedulesRefuseBadRequests(t *testing.T) {
	t.Parallel()
	i := postgrestest.Unmigrated(t)
	runSchedules(t, i, "backup")
	h := workHandler(t, i, i.Pool)
	for _, c := range []struct {
		method, target, body string
		status               int
		code, words          string
	}{
		{"POST", "/v1/schedules/backup/backfill", `{"from": "2025-01-01T00:00:00Z", "to": "9999-01-01T00:00:00Z"}`, 400, codeInvalidSettings, "in the future"},
		{"POST", "/v1/schedules/backup/backfill", `{}`, 400, codeInvalidSettings, "it must begin in 1970 or later"},
		{"POST", "/v1/schedules/none/backfill", `{"from": "2025-01-01T00:00:00Z", "to": "2025-02-01T00:00:00Z"}`, 404, codeUnknownSchedule, "none"},
		{"GET", "/v1/schedule-runs/one", "", 400, codeInvalidQuery, "the number of a run"},
		{"GET", "/v1/schedule-runs/0", "", 400, codeInvalidQuery, "the number of a run"},
		{"GET", "/v1/schedule-runs/1000000", "", 404, codeUnknownRun, "there is no run 1000000"},
		{"GET", "/v1/schedules/backpu", "", 404, codeUnknownSchedule, `there is no schedule \"backpu\"; known schedules: backup`},
		{"GET", "/v1/schedules/backup/runs?count=0", "", 400, codeInvalidQuery, "between 1 and 1000"},
		{"PATCH", "/v1/schedules/backup", `{"expression": "often"}`, 400, codeInvalidSettings, `"the schedule backup: the schedule \"often\": the number of fields`},
		{"PATCH", "/v1/schedules/backup", `{"timezone": "Mars/Olympus"}`, 400, codeInvalidSettings, "Mars/Olympus"},
		{"PATCH", "/v1/schedules/backup", `{}`, 400, codeInvalidSettings, "no change was given for the schedule"},
		{"PATCH", "/v1/schedules/backup", `{"policy": "at_least_once"}`, 400, codeInvalidBody, "one JSON object"},
		{"PATCH", "/v1/schedules/backup", `{"timeout_seconds": 1e300}`, 400, codeInvalidBody, "one JSON object"},
		{"PATCH", "/v1/schedules/none", `{"timezone": "UTC"}`, 404, codeUnknownSchedule, "none"},
		{"POST", "/v1/schedules", `{"schedule": "new", "job": "none", "expression": "@daily"}`, 404, codeUnknownSchedule, "none"},
		{"POST", "/v1/schedules", `{"schedule": "", "job": "backup", "expression": "@daily"}`, 400, codeInvalidSettings, "name"},
		{"POST", "/v1/schedules", `{"schedule": "backup", "job": "backup", "expression": "@daily"}`, 409, codeConflict, "already a schedule backup"},
		{"DELETE", "/v1/schedules/backup", "", 409, codeConflict, "remove it from the program first"},
		{"POST", "/v1/schedules/backup/trigger", `{"by": "ann"}`, 400, codeInvalidBody, "one JSON object"},
		{"POST", "/v1/schedules/none/pause", "", 404, codeUnknownSchedule, "none"},
	} {
		r := call(t, h, c.method, c.target, c.body, authorized...).refused(t, c.status, c.code)
		if !strings.Contains(r.body, c.words) || strings.Contains(r.body, "invalid configuration") {
			t.Errorf("%s %s %s: %s; want %s", c.method, c.target, c.body, r.body, c.words)
		}
	}
	for _, target := range []string{"/v1/schedules/backup/trigger", "/v1/schedules/backup/pause"} {
		call(t, h, http.MethodPost, target, "").refused(t, 401, codeUnauthorized)
		call(t, h, http.MethodPost, target, "", append([]string{"Sec-Fetch-Site", "cross-site"}, authorized...)...).refused(t, 403, codeCrossOrigin)
	}
	admin := cron.NewAdmin(i.Backend, i.Pool)
	if changes, err := admin.Changes(t.Context(), "", 10); err != nil || len(changes) != 0 {
		t.Errorf("%+v, %v; want no change", changes, err)
	}
	call(t, workHandler(t, i, nil), http.MethodGet, "/v1/schedules", "").refused(t, 501, codeNoWork)
}

// coverSchedules asks for every answer about schedules.
func coverSchedules(t *testing.T, answered coverage) {
	t.Helper()
	i := postgrestest.Unmigrated(t)
	runSchedules(t, i, "backup")
	coverReads(t, i, answered, "/v1/schedules", "/v1/audit?count=5", "/v1/schedules/backup", "/v1/schedules/backup/runs?count=5", "/v1/schedules/backup/next?count=5")
	const past = `{"from":"2025-01-01T00:00:00Z","to":"2026-01-01T00:00:00Z"}`
	const one, settings, added = "/v1/schedules/backup", `{"timezone":"UTC"}`, `{"schedule":"extra","job":"backup","expression":"` + never + `"}`
	coverWrites(t, i, answered, write{"POST", "/v1/schedules", added}, write{"PATCH", one, settings}, write{"DELETE", one, ""},
		write{"POST", one + "/trigger", ""}, write{"POST", one + "/backfill", past}, write{"POST", one + "/pause", ""}, write{"POST", one + "/resume", ""}, write{"POST", one + "/reset", ""},
		write{"GET", "/v1/schedule-runs/1", ""})
	h := workHandler(t, i, i.Pool)
	seen := func(method, target, body string) {
		t.Helper()
		answered.seen(t, h, method, target, body, authorized...)
	}
	for range 2 { // the second is a conflict
		seen("POST", "/v1/schedules", added)
	}
	seen("POST", "/v1/schedules", strings.Replace(added, "backup", "none", 1))
	seen("POST", "/v1/schedules/extra/reset", "")
	for _, name := range []string{"backup", "none"} {
		one := "/v1/schedules/" + name
		for _, action := range []string{"/trigger", "/pause", "/resume", "/reset"} {
			seen("POST", one+action, "")
		}
		seen("POST", one+"/backfill", past)
		seen("PATCH", one, settings)
		seen("DELETE", one, "")
		for _, target := range []string{one, one + "/runs", one + "/next"} {
			seen("GET", target, "")
		}
	}
	for _, run := range []string{"1", "one", "1000000"} {
		seen("GET", "/v1/schedule-runs/"+run, "")
	}
	seen("DELETE", "/v1/schedules/extra", "")
	coverConcurrentChange(t, i, func() { seen("PATCH", one, settings) })
}

// coverConcurrentChange makes a change that another one overtakes.
func coverConcurrentChange(t *testing.T, i *postgrestest.Installation, change func()) {
	t.Helper()
	tx, err := i.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, tx, pgtest.SQL(i.Backend, `UPDATE {schedules} SET override = '{"expression": "@daily"}' WHERE name = 'backup'`))
	pid := tx.Conn().PgConn().PID()
	changed := make(chan struct{})
	go func() {
		defer close(changed)
		change()
	}()
	i.Await("the change to wait", func() bool {
		return postgrestest.Value[bool](i, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1::integer = ANY (pg_blocking_pids(pid)))`, pid)
	})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-changed
}
