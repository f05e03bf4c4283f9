package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/roles"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/program/console"
)

// The test goes through the commands on an SQLite file, with nodes as
// processes.
func TestCommandsWorkOnLeases(t *testing.T) {
	t.Parallel()
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	on := func(args ...string) []string { return append(args, "--dsn", dsn) }

	invoke(t, on("status")...).want(t, console.ExitUsage) // there are no tables yet
	if got := invoke(t, on("doctor")...).want(t, console.ExitDone); !strings.Contains(got.stdout, "none yet") {
		t.Errorf("doctor: %s", got.stdout)
	}
	leader := launch(t, on("run", "--role", "r", "--name", "first", "-o", "json")...)
	leader.await("acquired")
	standby := launch(t, on("run", "--role", "r", "--name", "second", "-o", "json")...)
	standby.await("acquire_failed")
	invoke(t, on("acquire", "--role", "r")...).want(t, console.ExitNotAcquired)

	var before roles.StatusRecord
	status := invoke(t, on("status", "-o", "json")...).want(t, console.ExitDone)
	status.decode(t, &before)
	if !strings.Contains(status.stdout, `"key":null`) {
		t.Errorf("status: %s; leases have no lock keys", status.stdout)
	}
	if len(before.Roles) != 1 || before.Roles[0].Leader == nil || before.Roles[0].Leader.NodeName != "first" {
		t.Fatalf("status: %+v", before)
	}
	var after roles.StepDownRecord
	invoke(t, on("step-down", "--role", "r", "--to", "second", "-o", "json")...).want(t, console.ExitDone).decode(t, &after)
	if after.Leader == nil || after.Leader.NodeName != "second" || after.Leader.Term <= before.Roles[0].Leader.Term {
		t.Fatalf("step-down: %+v", after.Leader)
	}
	standby.await("acquired")

	// The second node dies, and the first one leads again within one lease.
	leader.await("acquire_failed")
	killed := time.Now()
	if err := standby.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	leader.await("acquired")
	const lease = 3 * time.Second
	if took := time.Since(killed); took > lease+2*time.Second {
		t.Errorf("a killed leader was replaced after %v; the lease is %v", took, lease)
	}
	var recorded roles.TermHistoryRecord
	invoke(t, on("history", "--role", "r=0x2A", "-o", "json")...).want(t, console.ExitDone).decode(t, &recorded)
	if terms := recorded.Terms; len(terms) != 3 || terms[0].NodeName != "first" || terms[0].Reason != "" ||
		terms[1].NodeName != "second" || terms[1].Reason != string(history.EndLeaseExpired) || terms[2].Reason != string(history.EndHandedOver) {
		t.Errorf("history: %+v", recorded.Terms)
	}
	invoke(t, on("history", "--nodes")...).want(t, console.ExitUsage)
	leader.signal(syscall.SIGTERM)
	if code := leader.exit(); code != console.ExitDone {
		t.Errorf("exit code %d: %s", code, leader.log())
	}
	invoke(t, on("migrate", "down", "--to", "0", "--yes")...).want(t, console.ExitDone)
	invoke(t, on("status")...).want(t, console.ExitUsage)
}

// The database is a file of the user, and the program says so.
func TestLocalUsesFileOfUser(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	got := invokeWith(t, []string{"XDG_STATE_HOME=" + state}, "acquire", "--role", "r", "--local").want(t, console.ExitDone)
	if strings.Count(got.stderr, "\n") != 1 || !strings.Contains(got.stderr, state) || !strings.Contains(got.stderr, "only for programs on this machine") {
		t.Errorf("standard error: %q", got.stderr)
	}
	if files, err := filepath.Glob(filepath.Join(state, "tenure", "local.db")); err != nil || len(files) != 1 {
		t.Errorf("files %q, %v", files, err)
	}
}

// Commands and flags that need sessions name that before they connect, and the
// page on leases lists those commands.
func TestCommandsThatNeedSessionsSaySo(t *testing.T) {
	t.Parallel()
	var refusing []string
	for _, args := range [][]string{
		{"alerts", "list"}, {"cluster", "status"}, {"cron", "list"}, {"node", "list"}, {"processor", "list"},
		{"rebalance", "--dry-run"}, {"retire", "--role", "a"}, {"serve", "--listen", "127.0.0.1:0"},
	} {
		refusing = append(refusing, args[0])
		wantRefusal(t, "sqlite:"+t.TempDir()+"/leases.db", args...)
	}
	for _, args := range [][]string{
		{"history", "--nodes"}, {"doctor", "--roles", "5"}, {"run", "--role", "a", "--min-nodes", "2"},
		{"migrate", "up", "--feature", "schedules"}, {"migrate", "grants", "--user", "a", "--work"},
	} {
		wantRefusal(t, "mysql://u@h/d", args...)
	}

	page, err := os.ReadFile("../../../../docs/explanation/leases.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sentence, _ := strings.Cut(string(page), "Eight commands refuse")
	sentence, _, _ = strings.Cut(sentence, ".")
	var listed []string
	for _, name := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(sentence, -1) {
		listed = append(listed, name[1])
	}
	if !slices.Equal(listed, refusing) {
		t.Errorf("the page on leases lists the commands %q; those that refuse leases are %q", listed, refusing)
	}
}

// wantRefusal checks that a command refuses a database with leases in one line.
func wantRefusal(t *testing.T, dsn string, args ...string) {
	t.Helper()
	got := invoke(t, append(args, "--dsn", dsn)...).want(t, console.ExitUsage)
	if strings.Count(got.stderr, "\n") != 1 || !strings.Contains(got.stderr, "lease") {
		t.Errorf("%q: got %q, want a refusal that names leases", args, got.stderr)
	}
}
