package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/internal/sandbox"
	"github.com/exactly-one/tenure/internal/testkit"
)

// schedules writes a configuration file with the place's database and [[cron]]
// tables, each given as its lines.
func (p place) schedules(t *testing.T, tables ...string) (path string) {
	t.Helper()
	lines := []string{"[database]", `dsn = "` + p.server.DSN() + `"`, `schema = "` + p.schema + `"`,
		"[run] # is for another command", `grace = "1h"`, `roles = ["other"]`}
	for _, table := range tables {
		lines = append(lines, "[[cron]]", table)
	}
	return writeFile(t, lines...)
}

// never is an expression whose next tick is years away.
const never = `schedule = "0 0 29 2 *"`

// cronNode launches "tenure cron run".
func cronNode(t *testing.T, path, name string, flags ...string) *process {
	t.Helper()
	return launch(t, append([]string{"cron", "run", "--config", path, "--name", name, "--role", "jobs"}, flags...)...)
}

// history reads the runs of a schedule.
func (p place) history(t *testing.T, schedule string) []record.Run {
	t.Helper()
	var answer record.Runs
	invoke(t, p.with("cron", "history", schedule, "-o", "json")...).want(t, console.ExitDone).decode(t, &answer)
	return answer.Runs
}

// trigger requests a run and returns its number.
func (p place) trigger(t *testing.T, schedule string) int64 {
	t.Helper()
	var answer record.TriggeredSchedule
	invoke(t, p.with("cron", "trigger", schedule, "--by", "ann", "-o", "json")...).want(t, console.ExitDone).decode(t, &answer)
	return answer.Run
}

// awaitRun waits until a run has ended, and returns it.
func (p place) awaitRun(t *testing.T, schedule string, id int64) record.Run {
	t.Helper()
	var found record.Run
	eventually(t, fmt.Sprintf("the end of run %d of %s", id, schedule), func() bool {
		for _, r := range p.history(t, schedule) {
			if r.Run == id {
				found = r
			}
		}
		return !time.Time(found.EndedAt).IsZero()
	})
	return found
}

// eventually waits until a condition holds. Most conditions run a command, which
// costs a connection.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	err := testkit.Until(t.Context(), patience, 100*time.Millisecond, func() error {
		if holds() {
			return nil
		}
		return errors.New(what)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The state of a run follows how its command ended. The test also checks the
// commands' environment. The timeouts leave a busy machine time to start a shell.
func TestRunsEndAsTheirCommandsEnd(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	folder := t.TempDir()
	path := place.schedules(t,
		`name = "good"`+"\n"+never+"\ntimezone = \"Asia/Tokyo\"\n"+
			`command = "echo $TENURE_SCHEDULE $TENURE_ATTEMPT $TENURE_RUN $TENURE_REQUESTED_BY $TENURE_ROLE $TENURE_TERM $TENURE_NODE_NAME $${TENURE_DSN-none} $TENURE_SCHEDULED_FOR"`,
		`name = "bad"`+"\n"+never+"\n"+`command = ["sh", "-c", "seq 500 >&2; echo oh no >&2; exit 7"]`,
		`name = "again"`+"\n"+never+"\nretries = 5\nretry_exit_codes = [\"9\", \"75\"]\nretry_base = \"10ms\"\n"+
			`command = "echo try $TENURE_ATTEMPT; case $TENURE_ATTEMPT in 3) exit 8;; esac; exit 75"`,
		`name = "slow"`+"\n"+never+"\ntimeout = \"2s\"\n"+`command = "trap 'echo asked >&2; exit 0' TERM; while :; do sleep 0.1; done"`,
		`name = "stubborn"`+"\n"+never+"\ntimeout = \"2s\"\n"+
			`command = "trap '' TERM; sh -c 'trap \"\" TERM; echo $$ > `+folder+`/pid; while :; do sleep 0.1; done' & wait; while :; do sleep 1; done"`,
		`name = "tick"`+"\n"+`schedule = "* * * * * *"`+"\n"+`command = "echo $${TENURE_REQUESTED_BY-none} >> `+folder+`/ticks"`,
	)
	node := cronNode(t, path, "api-1", "--grace", "300ms")
	node.awaitLog("msg=acquired")
	eventually(t, "the first tick", func() bool { text, _ := os.ReadFile(folder + "/ticks"); return len(text) > 0 })

	id := place.trigger(t, "good")
	good := place.awaitRun(t, "good", id)
	if good.State != "succeeded" || good.Error != "" || good.NodeName != "api-1" || !good.Manual || good.RequestedBy != "ann" {
		t.Errorf("%+v", good)
	}
	line, _ := node.line()
	want := fmt.Sprintf("good 1 %d ann jobs %d api-1 none ", id, *good.Term)
	at, err := time.Parse(time.RFC3339, strings.TrimPrefix(line, want))
	if _, offset := at.Zone(); err != nil || offset != 9*60*60 || !at.Equal(time.Time(good.ScheduledFor)) {
		t.Errorf("%q; want %q and the time (%v)", line, want, err)
	}

	bad := place.awaitRun(t, "bad", place.trigger(t, "bad"))
	if bad.State != "failed" || !strings.HasPrefix(bad.Error, "exit code 7: ") || !strings.HasSuffix(bad.Error, "\n499\n500\noh no") || len(bad.Error) > 1600 {
		t.Errorf("%+v", bad)
	}
	if log := node.log(); !strings.Contains(log, "\n1\n2\n3\n") {
		t.Error("the command's errors are not this program's")
	}
	output := func(id int64) string {
		t.Helper()
		var run record.RunWithOutput
		invoke(t, place.with("cron", "history", "--run", fmt.Sprint(id), "-o", "json")...).want(t, console.ExitDone).decode(t, &run)
		if run.Run.Run != id || run.OutputBytes != len(run.Output) {
			t.Errorf("run %d is %+v", id, run)
		}
		return run.Output
	}
	if got := output(good.Run); got != line+"\n" {
		t.Errorf("the output of the good run is %q; want %q", got, line)
	}
	if got := output(bad.Run); !strings.HasPrefix(got, "1\n2\n") || !strings.HasSuffix(got, "\n500\noh no\n") {
		t.Errorf("the output of the bad run is %q", got)
	}
	if printed := invoke(t, place.with("cron", "history", "--run", fmt.Sprint(good.Run))...).want(t, console.ExitDone); printed.stdout != line+"\n" {
		t.Errorf("printed %q; want %q", printed.stdout, line)
	}
	again := place.awaitRun(t, "again", place.trigger(t, "again"))
	if again.State != "failed" || again.Attempt != 3 || again.Error != "exit code 8" {
		t.Errorf("%+v", again)
	}
	if got := output(again.Run); got != "try 3\n" {
		t.Errorf("the output of the last attempt is %q", got)
	}
	slow := place.awaitRun(t, "slow", place.trigger(t, "slow"))
	if slow.State != "timed_out" || !strings.HasPrefix(slow.Error, "the command was ended because its timeout had passed: ") || !strings.HasSuffix(slow.Error, "asked") {
		t.Errorf("%+v", slow)
	}
	stubborn := place.awaitRun(t, "stubborn", place.trigger(t, "stubborn"))
	if stubborn.State != "timed_out" || aliveIn(t, filepath.Join(folder, "pid")) {
		t.Errorf("%+v, or its child lives", stubborn)
	}
	text, err := os.ReadFile(folder + "/ticks")
	if err != nil || strings.Contains(string(text), "ann") || !strings.HasPrefix(string(text), "none\n") {
		t.Errorf("%q, %v", text, err)
	}
	node.signal(syscall.SIGTERM)
	if code := node.exit(); code != console.ExitDone {
		t.Errorf("exit code %d", code)
	}
	for _, r := range place.history(t, "tick") {
		if r.State != "succeeded" && r.State != "skipped" { // skipped: a busy machine took longer than a second
			t.Errorf("%+v", r)
		}
	}
}

// aliveIn reports whether the process whose id is in a file is running.
func aliveIn(t *testing.T, path string) bool {
	t.Helper()
	return sandbox.Signal(numberIn(t, path), syscall.Signal(0)) == nil
}

// numberIn waits for a file with a number in it.
func numberIn(t *testing.T, path string) (number int) {
	t.Helper()
	eventually(t, path, func() bool {
		text, _ := os.ReadFile(path)
		n, _ := fmt.Sscanf(string(text), "%d\n", &number)
		return n == 1 && strings.HasSuffix(string(text), "\n")
	})
	return number
}

// If a leader is killed or stopped, the processes of its commands are dead
// before the next leader begins. The next leader repeats commands that are to
// run at least once and abandons those that are to run at most once.
func TestCommandOfKilledLeaderDiesBeforeNextLeader(t *testing.T) {
	t.Parallel()
	for what, signal := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": sandbox.PauseSignal} {
		t.Run(what, func(t *testing.T) {
			if what == "stopped" {
				pgtest.Long(t)
			}
			t.Parallel()
			testLeaderSignaledWithinACommand(t, signal)
		})
	}
}

func testLeaderSignaledWithinACommand(t *testing.T, signal syscall.Signal) {
	t.Helper()
	place := newPlace(t)
	folder := t.TempDir()
	// A command that keeps running holds a lock that only one process can hold, and has
	// a child that leaves its process group and its Unix session.
	stay := func(name string) string {
		return fmt.Sprintf(`command = "exec 9>%[1]s/%[2]s.lock; flock -n 9 || { echo overlap >> %[1]s/overlaps; }; `+
			`setsid sh -c 'trap \"\" TERM HUP; sleep 100; :' & echo $TENURE_ATTEMPT $TENURE_NODE_NAME >> %[1]s/%[2]s; [ $TENURE_ATTEMPT = 2 ] || wait"`, folder, name)
	}
	path := place.schedules(t,
		`name = "once"`+"\n"+never+"\n"+stay("once"),
		`name = "again"`+"\n"+never+"\npolicy = \"at-least-once\"\n"+stay("again"),
	)
	leader := cronNode(t, path, "first", "--lease", "5s")
	leader.awaitLog("msg=acquired")
	eventually(t, "the schedules", func() bool { return len(place.schedulesOf(t)) == 2 })
	successor := cronNode(t, path, "second", "--lease", "5s")
	once, again := place.trigger(t, "once"), place.trigger(t, "again")
	for _, name := range []string{"once", "again"} {
		eventually(t, name, func() bool { text, _ := os.ReadFile(filepath.Join(folder, name)); return string(text) == "1 first\n" })
	}
	leader.signal(signal)
	successor.awaitLog("msg=acquired")
	if r := place.awaitRun(t, "once", once); r.State != "abandoned" || r.Attempt != 1 {
		t.Errorf("%+v", r)
	}
	if r := place.awaitRun(t, "again", again); r.State != "succeeded" || r.Attempt != 2 || r.NodeName != "second" {
		t.Errorf("%+v", r)
	}
	for name, want := range map[string]string{"once": "1 first\n", "again": "1 first\n2 second\n"} {
		if text, err := os.ReadFile(filepath.Join(folder, name)); string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(folder, "overlaps")); err == nil {
		t.Errorf("a command of the old leader lived when that of the new one began: %s", text)
	}
}

// schedulesOf lists the schedules in the database.
func (p place) schedulesOf(t *testing.T) []record.Schedule {
	t.Helper()
	var answer record.Schedules
	invoke(t, p.with("cron", "list", "-o", "json")...).want(t, console.ExitDone).decode(t, &answer)
	return answer.Schedules
}

// A command that ends in time succeeds; a command that must be killed is left
// to the next leader.
func TestLeavingNodeEndsCommands(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	folder := t.TempDir()
	path := place.schedules(t,
		`name = "short"`+"\n"+never+"\n"+`command = "echo > `+folder+`/short; until [ -e `+folder+`/end ]; do sleep 0.01; done"`,
		`name = "long"`+"\n"+never+"\n"+`policy = "at-least-once"`+"\n"+`command = "echo > `+folder+`/long; [ $TENURE_ATTEMPT = 2 ] || sleep 100"`,
	)
	node := cronNode(t, path, "first", "--stop-timeout", "3s", "--grace", "200ms")
	node.awaitLog("msg=acquired")
	eventually(t, "the schedules", func() bool { return len(place.schedulesOf(t)) == 2 })
	short, long := place.trigger(t, "short"), place.trigger(t, "long")
	for _, name := range []string{"short", "long"} {
		eventually(t, name, func() bool { _, err := os.Stat(filepath.Join(folder, name)); return err == nil })
	}
	node.signal(syscall.SIGTERM)
	if err := os.WriteFile(filepath.Join(folder, "end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := node.exit(); code != console.ExitDone {
		t.Errorf("exit code %d", code)
	}
	if r := place.awaitRun(t, "short", short); r.State != "succeeded" {
		t.Errorf("%+v", r)
	}
	if runs := place.history(t, "long"); len(runs) != 1 || runs[0].State != "running" {
		t.Errorf("%+v", runs)
	}
	cronNode(t, path, "second").awaitLog("msg=acquired")
	if r := place.awaitRun(t, "long", long); r.State != "succeeded" || r.Attempt != 2 {
		t.Errorf("%+v", r)
	}
}

// A command that cannot be started is left to the next leader: no schedule waits for the
// time that work in flight may take.
func TestCommandThatCannotStartIsLeftToNextLeader(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	program := filepath.Join(t.TempDir(), "program")
	install := func() {
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	install()
	path := place.schedules(t, `name = "again"`+"\n"+never+"\npolicy = \"at-least-once\"\ncommand = [\""+program+"\"]")
	first := cronNode(t, path, "first", "--stop-timeout", "1h")
	first.awaitLog("msg=acquired")
	eventually(t, "the schedule", func() bool { return len(place.schedulesOf(t)) == 1 })
	second := cronNode(t, path, "second")
	second.awaitLog("session opened")
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	again := place.trigger(t, "again")
	first.awaitLog("resigning")
	install()
	second.awaitLog("msg=acquired")
	if r := place.awaitRun(t, "again", again); r.State != "succeeded" || r.Attempt != 2 || r.NodeName != "second" {
		t.Errorf("%+v", r)
	}
}

// A user with the privileges that are printed can run commands on schedules. A
// user who lacks one learns how to get it.
func TestCronRunNeedsPrintedGrantsOnly(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	invoke(t, place.with("migrate", "up", "--feature", "processors")...).want(t, console.ExitDone)
	user := "u_" + place.schema
	run := func(sql string) {
		t.Helper()
		if _, err := place.server.Conn(t).Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%v in\n%s", err, sql)
		}
	}
	run("CREATE ROLE " + user + " LOGIN")
	t.Cleanup(func() {
		_, _ = place.server.Conn(t).Exec(context.Background(), "DROP OWNED BY "+user+"; DROP ROLE "+user, pgx.QueryExecModeSimpleProtocol)
	})
	asUser := []string{"--dsn", place.server.DSNFor(user, "postgres")}
	grants := func(flags ...string) {
		t.Helper()
		run(invoke(t, append(place.with("migrate", "grants", "--user", user), flags...)...).want(t, console.ExitDone).stdout)
	}
	grants()
	path := place.schedules(t, `name = "a"`+"\n"+never+"\n"+`command = "true"`)
	cannotCreate := cronNode(t, path, "api-0", asUser...)
	cannotCreate.awaitLog("run tenure migrate up --feature schedules")
	cannotCreate.signal(syscall.SIGTERM)
	if code := cannotCreate.exit(); code != console.ExitDone {
		t.Errorf("exit code %d", code)
	}
	invoke(t, place.with("migrate", "up", "--feature", "schedules")...).want(t, console.ExitDone)
	for _, args := range [][]string{{"cron", "list"}, {"processor", "list"}} {
		got := invoke(t, slices.Concat(args, asUser, []string{"--schema", place.schema})...).want(t, console.ExitUsage)
		if !strings.Contains(got.stderr, "tenure migrate grants --work") || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%q: %q", args, got.stderr)
		}
	}
	grants("--work")
	node := cronNode(t, path, "api-1", asUser...)
	node.awaitLog("msg=acquired")
	eventually(t, "the schedule", func() bool { return len(place.schedulesOf(t)) == 1 })
	if r := place.awaitRun(t, "a", place.trigger(t, "a")); r.State != "succeeded" {
		t.Errorf("%+v", r)
	}
	node.signal(syscall.SIGTERM)
	if code := node.exit(); code != console.ExitDone {
		t.Errorf("exit code %d", code)
	}
	if got := invoke(t, "migrate", "grants", "--user", user, "--work", "--application").want(t, console.ExitUsage); !strings.Contains(got.stderr, "use only --") {
		t.Errorf("%q", got.stderr)
	}
}

func TestCronRunRejectsBadInput(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	good := place.schedules(t, `name = "a"`+"\n"+never+"\n"+`command = "true"`)
	missing := place.schedules(t, `name = "a"`+"\n"+never+"\n"+`command = ["/no/such/program"]`)
	for _, test := range []struct {
		want string
		code int
		args []string
	}{
		{"[[cron]]", console.ExitUsage, []string{"--config", place.schedules(t)}},
		{"[[cron]]", console.ExitUsage, place.with()},
		{"one role", console.ExitUsage, []string{"--config", good, "--role", "a", "--role", "b"}},
		{"--grace is 1h", console.ExitUsage, []string{"--config", good, "--grace", "1h"}},
		{"more than zero", console.ExitUsage, []string{"--config", good, "--missed-after", "0"}},
		{"this database uses leases", console.ExitUsage, []string{"--config", good, "--dsn", "sqlite:" + filepath.Join(t.TempDir(), "x.db")}},
		{"the schedule a", console.ExitNotFound, []string{"--config", missing}},
		{"takes no arguments", console.ExitUsage, []string{"--config", good, "backup"}},
	} {
		got := invoke(t, slices.Concat([]string{"cron", "run"}, test.args)...).want(t, test.code)
		if !strings.Contains(got.stderr, test.want) || strings.Count(got.stderr, "\n") != 1 || got.stdout != "" {
			t.Errorf("%q: %q", test.args, got.stderr)
		}
	}
}

// SIGHUP changes the schedules without a new term; a file with an error changes
// nothing.
func TestReloadChangesSchedules(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	folder := t.TempDir()
	writes := func(name, schedule string) string {
		return fmt.Sprintf("name = %q\nschedule = %q\ncommand = \"echo $TENURE_TERM >> %s/%s\"", name, schedule, folder, name)
	}
	path := place.schedules(t, writes("old", "0 0 29 2 *"), writes("both", "0 0 29 2 *"))
	node := cronNode(t, path, "api-1")
	node.awaitLog("msg=acquired")
	eventually(t, "the schedules", func() bool { return len(place.schedulesOf(t)) == 2 })
	reload := func(tables ...string) {
		t.Helper()
		text, err := os.ReadFile(place.schedules(t, tables...))
		if err != nil {
			t.Fatal(err)
		}
		rewrite(t, path, string(text))
		node.signal(syscall.SIGHUP)
	}
	reload(writes("both", "@every 1s"), writes("new", "* * * * * *"))
	node.awaitLog("the configuration was reloaded")
	terms := map[int]bool{numberIn(t, folder+"/new"): true, numberIn(t, folder+"/both"): true}
	if len(terms) != 1 { // the term continued
		t.Errorf("terms %v", terms)
	}
	statuses := map[string]string{}
	for _, s := range place.schedulesOf(t) {
		statuses[s.Schedule] = s.Status
	}
	if want := map[string]string{"old": "unled", "both": "active", "new": "active"}; !maps.Equal(statuses, want) {
		t.Errorf("%v", statuses)
	}
	for _, change := range []string{`cron \"old\" is removed`, `cron \"both\" changes`, `cron \"new\" is new`} {
		node.awaitLog(`msg="a change was applied" change="` + change)
	}
	reload(writes("both", "0 0 30 2 *"))
	node.awaitLog("it never ticks")
	reload("name = \"new\"\n" + never + "\ncommand = [\"/no/such/program\"]")
	node.awaitLog("a change could not be applied")
	n := len(place.history(t, "both"))
	eventually(t, "further ticks", func() bool { return len(place.history(t, "both")) > n })
	node.signal(syscall.SIGTERM) // a killed node can leave a command that writes to the folder
	node.exit()
}
