package cli

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// launchAsUser launches the program as a user that no other process has, so that a limit
// on the number of the user's processes and threads concerns this node only. The kernel
// does not limit root.
func launchAsUser(t *testing.T, user string, args ...string) *process {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test starts a process as another user: run it as root")
	}
	// Another user cannot reach the path of the program.
	const script = `user=$0 program=$1; shift; exec 3<"$program"
		exec setpriv --reuid "$user" --regid "$user" --clear-groups -- sh -c 'exec /proc/self/fd/3 "$@"' sh "$@"`
	return launchProgram(t, "sh", []string{"GOMAXPROCS=1"}, append([]string{"-c", script, user, os.Args[0]}, args...)...)
}

// limitThreads allows the user of a process a number of threads beyond those of the
// process.
func (p *process) limitThreads(user string, more int) {
	p.t.Helper()
	pid := strconv.Itoa(p.command.Process.Pid)
	threads, err := os.ReadDir("/proc/" + pid + "/task")
	if err != nil {
		p.t.Fatal(err)
	}
	limit := fmt.Sprintf("--nproc=%[1]d:%[1]d", len(threads)+more)
	// Root without CAP_SYS_RESOURCE may not set the limits of other users' processes.
	output, err := exec.Command("setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--", "prlimit", "--pid", pid, limit).CombinedOutput()
	if err != nil {
		p.t.Fatalf("prlimit: %v: %s", err, output)
	}
}

// A node that the system refuses further processes cannot start a guardian, or its
// guardian dies. Such a start counts as a restart, and a standby leads.
func TestStandbyTakesOverFromNodeThatCannotStartGuardians(t *testing.T) {
	pgtest.Long(t)
	for i, more := range []int{0, 2} {
		t.Run(fmt.Sprintf("%d more threads", more), func(t *testing.T) {
			t.Parallel()
			user := strconv.Itoa(1<<30 + 2*os.Getpid() + i)
			place := newPlace(t)
			// The health checks make the node create threads that it does not need later: a
			// program that needs a thread and gets none dies.
			sick := launchAsUser(t, user, place.guarded(`trap 'exit 3' USR1; echo run; read -r _`,
				"--health-command", "echo checked", "--health-every", "2s")...)
			sick.want("run")
			sick.awaitLog("checked")
			healthy := place.standby(t)
			sick.limitThreads(user, more)
			sick.signal(unix.SIGUSR1)
			healthy.want("steady")
			sick.awaitLog("leaving the role to other candidates")
			if log := sick.log(); strings.Count(log, "the command could not be run") != 5 || !strings.Contains(log, "6 times in a row") {
				t.Errorf("the node did not resign after 5 restarts, none of which started the command")
			}
		})
	}
}

// A node whose guardian is killed again and again gives up the role, as one whose command
// fails: a machine without memory kills guardians, too.
func TestStandbyTakesOverFromNodeWhoseGuardianIsKilled(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	place := newPlace(t)
	sick := launch(t, place.guarded(`echo run; until test -e `+folder+`/begin; do sleep 0.01; done; kill -KILL $PPID; sleep 1000`,
		"--max-restarts", "2", "--restart", "never")...)
	sick.want("run")
	healthy := place.standby(t)
	if err := os.WriteFile(folder+"/begin", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	runs, led, limit := 1, false, time.After(patience)
	for runs <= 3 && !led {
		select {
		case <-sick.lines:
			runs++
		case <-healthy.lines:
			led = true
		case <-limit:
			t.Fatalf("after %d runs of the command neither node continues; log:\n%s", runs, sick.log())
		}
	}
	if runs != 3 || !led {
		t.Errorf("a node whose guardian was killed each time ran its command %d times (standby leads: %t), want 3 times and then the standby", runs, led)
	}
	sick.awaitLog("the command ended 3 times in a row, most recently because the guardian was killed")
}
