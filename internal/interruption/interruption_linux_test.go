package interruption

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/pgtest"
)

const (
	// starting bounds how long a target needs to build its program and to start servers.
	starting = 8 * time.Minute
	// ending bounds how long an interrupted target needs to clean up.
	ending = 60 * time.Second
)

// end is a way to end a target.
type end struct {
	name   string
	signal syscall.Signal
	group  bool // the signal reaches the process group, as from a terminal
}

var (
	interrupted = end{"SIGINT", syscall.SIGINT, true}
	terminated  = end{"SIGTERM", syscall.SIGTERM, false}
	killed      = end{"SIGKILL of make", syscall.SIGKILL, false}
)

// target is a make target, with the processes that show that it is at work, and how it is
// ended.
type target struct {
	arguments string
	works     map[string]int // how many processes of a name there are, at least
	ends      []end
}

// Each group's targets build the same program, so they run one after another.
var targets = map[string][]target{
	"chaos": {{
		"chaos DURATION=5m SEED=1 NODES=3 ROLES=3",
		map[string]int{"chaos": 4, "postgres": 6}, []end{interrupted, terminated, killed},
	}},
	"chaos-patroni": {{
		"chaos-patroni FAILOVERS=1 MODE=sync KIND=kill",
		map[string]int{"etcd": 1, "patroni": 3, "chaos-patroni": 4, "postgres": 15}, []end{interrupted, terminated, killed},
	}},
	"bench-failover": {{
		"bench-failover ARGS='-only=sigkill,network-cut -rounds=1000'",
		map[string]int{"bench-failover": 4, "postgres": 6}, []end{interrupted, terminated, killed},
	}},
	"sim": {{
		"sim N=1000000 ARGS='-part=1000000'",
		map[string]int{"sim-parts": 1, "sim.test": 1}, []end{interrupted, terminated, killed},
	}},
	"tests": {
		{"test-proxies ARGS='-page= haproxy'", map[string]int{"haproxy": 1, "postgres": 6}, []end{interrupted}},
		{"test-proxies ARGS='-page= pgbouncer'", map[string]int{"pgbouncer": 1, "postgres": 6}, []end{terminated}},
		{"test-proxies ARGS='-page= pgpool'", map[string]int{"pgpool": 5, "postgres": 6}, []end{killed}},
		{"test-matrix ARGS='-page= -suites=acceptance installed'", map[string]int{"postgres": 6}, []end{terminated}},
		{"test-matrix ARGS='-page= -suites=conformance mariadb'", map[string]int{"mariadbd": 1}, []end{interrupted}},
		{"test-managed", map[string]int{"postgres": 6}, []end{interrupted, terminated, killed}},
	},
}

// A target that is interrupted at the terminal, or terminated, or whose make is killed,
// leaves nothing: no process, no network namespace, no mount, no file.
func TestInterruptedTargetLeavesNothing(t *testing.T) {
	pgtest.Long(t)
	for name, group := range targets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, tested := range group {
				for _, way := range tested.ends {
					t.Run(tested.arguments+", "+way.name, func(t *testing.T) { interrupt(t, tested, way) })
				}
			}
		})
	}
}

// interrupt starts a target, ends it when it is at work, and looks at what is left.
func interrupt(t *testing.T, tested target, way end) {
	t.Helper()
	made := newTraces(t)
	running, printed := start(t, tested, made)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = running.Wait() // it ends with the signal
	}()
	defer func() {
		for _, p := range made.processes() {
			_ = syscall.Kill(p.pid, syscall.SIGKILL) // what is left has been reported
		}
		<-ended
	}()
	err := children.Until(t.Context(), starting, 20*time.Millisecond, func() error {
		select {
		case <-ended:
			t.Fatalf("%s ended before the interrupt:\n%s", tested.arguments, printed)
		default:
		}
		return tested.atWork(made.processes())
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	if files := made.memoryFiles(); len(files) > 0 {
		t.Errorf("a server that a fault kills would leave %v", files)
	}
	receiver := running.Process.Pid
	if way.group {
		receiver = -receiver
	}
	if err := syscall.Kill(receiver, way.signal); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	err = children.Until(t.Context(), ending, 20*time.Millisecond, func() error {
		if left := made.left(); len(left) > 0 {
			return fmt.Errorf("left:\n%s", strings.Join(left, "\n"))
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	t.Logf("nothing is left after %v", time.Since(began).Round(time.Millisecond))
}

// start starts make in a new process group, as a shell with job control does.
func start(t *testing.T, tested target, made *traces) (*exec.Cmd, *output) {
	t.Helper()
	command := exec.Command("/bin/sh", "-c", "exec make --no-print-directory "+tested.arguments)
	command.Dir = "../.."
	command.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains([]string{"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "TENURE_KEEP_TEMPLATES"}, name)
	})
	command.Env = append(command.Env, made.marked, "TMPDIR="+made.temporary, "GOTMPDIR="+made.build)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM} // it ends with the test
	printed := new(output)
	command.Stdout, command.Stderr = printed, printed
	command.WaitDelay = time.Second // what is left may hold the pipe
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return command, printed
}

// atWork returns an error that says which processes the target lacks.
func (tested target) atWork(all []process) error {
	counts := map[string]int{}
	for _, p := range all {
		counts[p.name]++
	}
	for name, least := range tested.works {
		if counts[name] < least {
			return fmt.Errorf("%d processes %s, want %d", counts[name], name, least)
		}
	}
	return nil
}

// output is what a target has printed.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
