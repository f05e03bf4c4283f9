//go:build linux

package guardian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/testkit"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == CommandName {
		os.Exit(Main(os.Args[1:], os.Stderr))
	}
	if len(os.Args) == 4 && os.Args[1] == supervisorName {
		os.Exit(supervise(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

// patience bounds every wait for a process.
const patience = 20 * time.Second

// fakeTerm is a term without a database.
type fakeTerm struct {
	mu       sync.Mutex
	until    time.Time
	stopping chan struct{}
	ctx      context.Context
	lose     context.CancelFunc
}

func newTerm(t *testing.T, trust time.Duration) *fakeTerm {
	s := &fakeTerm{until: time.Now().Add(trust), stopping: make(chan struct{})}
	s.ctx, s.lose = context.WithCancel(t.Context())
	t.Cleanup(s.lose)
	return s
}

func (s *fakeTerm) Remaining() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, time.Until(s.until))
}

func (s *fakeTerm) renew(trust time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = time.Now().Add(trust)
}

func (s *fakeTerm) Stopping() <-chan struct{}          { return s.stopping }
func (s *fakeTerm) Context() context.Context           { return s.ctx }
func (s *fakeTerm) LockConn() (syscall.RawConn, error) { return nil, nil }

// run is a command in progress.
type run struct {
	t      *testing.T
	term   *fakeTerm
	folder string // where the command is
	pid    int
	ended  chan struct{}
	end    End
	err    error
}

// begin runs a shell script under a guardian and waits until the script has
// written the file "ready". A script finds itself in its own folder.
func begin(t *testing.T, term *fakeTerm, script string, changes ...func(*Command)) *run {
	t.Helper()
	r := &run{t: t, term: term, folder: t.TempDir(), ended: make(chan struct{})}
	started := make(chan int, 1)
	command := Command{
		Path: "/bin/sh", Args: []string{"sh", "-c", "cd " + r.folder + " && { " + script + "\n}"},
		Env:   append(os.Environ(), "GORACE=atexit_sleep_ms=0"), // a guardian with the race detector would sleep before it ends
		Grace: 500 * time.Millisecond, Lead: 100 * time.Millisecond, Refresh: 100 * time.Millisecond,
		StopSignal: func() syscall.Signal { return syscall.SIGTERM },
		Started:    func(pid int) { started <- pid },
		Logger:     slog.New(slog.DiscardHandler),
	}
	command.StopTimeout = func() time.Duration { return command.Grace }
	for _, change := range changes {
		change(&command)
	}
	go func() {
		defer close(r.ended)
		r.end, r.err = Run(term, command)
	}()
	t.Cleanup(func() {
		term.lose()
		<-r.ended
	})
	select {
	case r.pid = <-started:
	case <-r.ended:
	case <-time.After(patience):
		t.Fatal("the command does not start")
	}
	return r
}

// file waits for a file of the command's and returns the number in it.
func (r *run) file(name string) int {
	r.t.Helper()
	number, found := r.number(name)
	if !found {
		r.t.Fatalf("no number in the file %s", name)
	}
	return number
}

// asked waits until a process has written that it was asked to end.
func (r *run) asked(who string) {
	r.t.Helper()
	if _, found := r.number("asked"); !found {
		r.t.Errorf("%s was not asked to end", who)
	}
}

// number waits for a file with a number. No process writes one after the run.
func (r *run) number(name string) (number int, found bool) {
	testkit.Within(patience, func() bool {
		last := r.over() // the file is read after this
		text, _ := os.ReadFile(filepath.Join(r.folder, name))
		var err error
		number, err = strconv.Atoi(strings.TrimSpace(string(text)))
		found = err == nil && bytes.HasSuffix(text, []byte("\n"))
		return found || last
	})
	return number, found
}

// over reports whether the run has ended.
func (r *run) over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// wait waits for the end of the run and returns how long it took.
func (r *run) wait() time.Duration {
	r.t.Helper()
	start := time.Now()
	testkit.Receive(r.t, r.ended, patience, "the run does not end")
	return time.Since(start)
}

// want checks how the run ended.
func (r *run) want(want End) {
	r.t.Helper()
	r.wait()
	if r.err != nil || r.end != want {
		r.t.Errorf("the command ended with %+v, %v; want %+v", r.end, r.err, want)
	}
}

// dead checks that a process does not live.
func (r *run) dead(pid int) {
	r.t.Helper()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		r.t.Errorf("invariant 4: process %d lives: %v", pid, err)
	}
}

// The variants of a tree that does not want to die. Each writes the number of
// its process into the file "last" when all of it is there.
var stubborn = map[string]string{
	"ignores SIGTERM":           `trap '' TERM; echo $$ > last; while :; do sleep 60; done`,
	"stopped":                   `echo $$ > last; kill -STOP $$`,
	"grandchildren":             `trap '' TERM; sh -c 'sh -c "echo \$\$ > last; sleep 60; :"; :'; :`,
	"daemon within its group":   `trap '' TERM; sh -c 'sh -c "echo \$\$ > last; sleep 60; :" & :'; sleep 60; :`,
	"daemon in its own session": `trap '' TERM; sh -c 'setsid sh -c "trap \"\" HUP; echo \$\$ > last; sleep 60; :" & :'; sleep 60; :`,

	// Freeing its memory takes the kernel several milliseconds.
	"slow to end": `trap '' TERM; { head -c 100000000 /dev/zero; cat pid > last; sleep 60; } | sh -c 'echo $$ > pid; exec tail -c 100000000'`,
}

// Whatever processes the command has started, none is running when the term is
// lost, released or not renewed, or when the guardian is killed or stopped.
func TestWholeTreeIsKilled(t *testing.T) {
	ends := map[string]func(r *run){
		"lost":     func(r *run) { r.term.lose() },
		"given up": func(r *run) { close(r.term.stopping) },
		"not renewed": func(r *run) {
			r.term.renew(300 * time.Millisecond)
		},
		"guardian killed":               func(r *run) { r.signalGuardian(syscall.SIGKILL) },
		"guardian stopped, then lost":   func(r *run) { r.signalGuardian(syscall.SIGSTOP); r.term.lose() },
		"guardian stopped, not renewed": func(r *run) { r.signalGuardian(syscall.SIGSTOP); r.term.renew(300 * time.Millisecond) },
	}
	for what, script := range stubborn {
		for how, end := range ends {
			t.Run(what+"/"+how, func(t *testing.T) {
				if how != "not renewed" && what != "daemon in its own session" {
					pgtest.Long(t)
				}
				r := begin(t, newTerm(t, time.Hour), script)
				last := r.file("last")
				end(r)
				r.wait()
				r.dead(r.pid)
				r.dead(last)
				if !r.end.Stopped || r.err != nil {
					t.Errorf("%+v, %v", r.end, r.err)
				}
			})
		}
	}
}

// signalGuardian sends a signal to the command's parent.
func (r *run) signalGuardian(number syscall.Signal) {
	r.t.Helper()
	parent, err := parentOf(r.pid)
	if err == nil {
		err = syscall.Kill(parent, number)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func parentOf(pid int) (int, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])[1]))
}

// If a term is not renewed, the command is asked to end first, and killed
// before trust ends. The lead is the time that a busy machine has for killing.
func TestCommandIsKilledBeforeTrustEnds(t *testing.T) {
	t.Parallel()
	const grace, lead = 13 * time.Second, 10 * time.Second
	r := begin(t, newTerm(t, time.Hour), `trap 'echo 1 > asked' TERM; echo 1 > ready; while :; do sleep 0.1; done`,
		func(c *Command) { c.Grace, c.Lead = grace, lead })
	r.file("ready")
	r.term.renew(grace + time.Second)
	r.asked("the command")
	if left := r.term.Remaining(); left > grace {
		t.Errorf("asked to end %v before the end of trust; want at most %v", left, grace)
	}
	r.wait()
	switch left := r.term.Remaining(); {
	case left == 0:
		t.Error("the command outlived the trust")
	case left > lead:
		t.Errorf("killed %v before the end of trust; want at most %v", left, lead)
	}
	r.dead(r.pid)
}

// A command runs as long as the term is renewed.
func TestCommandRunsWhileTermIsRenewed(t *testing.T) {
	pgtest.Long(t)
	const trust = 6 * time.Second
	r := begin(t, newTerm(t, trust), `trap 'exit 9' TERM; for i in $(seq 80); do sleep 0.1; done; exit 4`)
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for running := true; running; {
		select {
		case <-ticker.C:
			r.term.renew(trust)
		case <-r.ended:
			running = false
		}
	}
	r.want(End{Code: 4})
}

// The exit code of a command that ended on its own. The run ends when all
// processes that it left have ended; they are asked to end first.
func TestExitCodesOfCommandsAreReported(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		want   End
	}{
		"success": {`exit 0`, End{}},
		"failure": {`exit 77`, End{Code: 77}},
		"signal":  {`kill -SEGV $$`, End{Code: 128 + int(syscall.SIGSEGV)}},
		"leaves something behind": {
			`setsid sh -c 'trap "echo 1 > asked; exit" TERM; echo $$ > left; while :; do sleep 0.1; done' & while ! [ -s left ]; do sleep 0.01; done; exit 3`,
			End{Code: 3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := begin(t, newTerm(t, time.Hour), test.script, func(c *Command) { c.Grace = patience })
			left := strings.Contains(name, "behind")
			if left {
				r.asked("the process that the command left") // the run waits for it
			}
			r.want(test.want)
			if left {
				r.dead(r.file("left"))
			}
		})
	}
}

// A command that ends on request has its grace period, gets the chosen signal,
// and gets it once.
func TestCommandEndsGracefully(t *testing.T) {
	r := begin(t, newTerm(t, time.Hour), `trap 'sleep 0.2; exit 5' USR1; trap 'exit 6' TERM; echo 1 > ready; while :; do sleep 0.1; done`,
		func(c *Command) {
			c.Grace = patience
			c.StopSignal = func() syscall.Signal { return syscall.SIGUSR1 } // never ignored, as SIGINT may be
		})
	r.file("ready")
	close(r.term.stopping)
	r.want(End{Code: 5, Stopped: true})
}

// Signals reach the command's group.
func TestSignalsAreForwarded(t *testing.T) {
	signals := make(chan os.Signal)
	r := begin(t, newTerm(t, time.Hour), `trap 'exit 8' USR1; echo 1 > ready; while :; do sleep 0.1; done`,
		func(c *Command) { c.Signals = signals })
	r.file("ready")
	signals <- syscall.SIGUSR1
	r.want(End{Code: 8})
}

// A file that the kernel does not execute.
func TestNotExecutableFileIsReported(t *testing.T) {
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage, []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := begin(t, newTerm(t, time.Hour), "", func(c *Command) { c.Path = garbage })
	r.wait()
	if !errors.Is(r.err, ErrNotStarted) || !strings.Contains(r.err.Error(), "exec format error") {
		t.Error(r.err)
	}
}

// Nothing runs in a term that is about to end.
func TestNothingStartsNearTheEnd(t *testing.T) {
	r := begin(t, newTerm(t, 50*time.Millisecond), "echo 1 > ran")
	r.wait()
	if !errors.Is(r.err, ErrNotStarted) && !r.end.Stopped {
		t.Errorf("%+v, %v", r.end, r.err)
	}
	if _, err := os.Stat(filepath.Join(r.folder, "ran")); err == nil {
		t.Error("the command ran")
	}
}

// The command has only the descriptors that every process started by this one has,
// and so none of the guardian's, including the anchor. It has the signal settings that
// this program was started with, and its environment.
func TestCommandInheritsOnlyItsDescriptors(t *testing.T) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGUSR2)
	defer signal.Stop(caught)
	const count = `ls -l /proc/self/fd | grep -v ' [012] ->' | grep -c -e socket: -e anon_inode:`
	inherited, _ := exec.Command("sh", "-c", count).Output() // grep fails if there is none
	script := count + ` > descriptors; grep SigIgn /proc/self/status > ignored; grep SigBlk /proc/self/status | tr -d '0\n\t ' > blocked; echo $COLOR > color; echo 1 > ready`
	r := begin(t, newTerm(t, time.Hour), script, func(c *Command) { c.Env = []string{"COLOR=7", "PATH=" + os.Getenv("PATH")} })
	r.want(End{})
	if n := r.file("descriptors"); fmt.Sprintln(n) != string(inherited) {
		t.Errorf("%d descriptors, without the guardian %s", n, inherited)
	}
	if n := r.file("color"); n != 7 {
		t.Error("the environment is another")
	}
	blocked, err := os.ReadFile(filepath.Join(r.folder, "blocked"))
	if err != nil || string(blocked) != "SigBlk:" {
		t.Errorf("blocked signals: %s, %v", blocked, err)
	}
	// Only what the whole program was started to ignore may stay ignored.
	own, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	ignored, err := os.ReadFile(filepath.Join(r.folder, "ignored"))
	if err != nil {
		t.Fatal(err)
	}
	if more := ignoredSignals(t, ignored) &^ ignoredSignals(t, own); more != 0 {
		t.Errorf("ignored signals beside those of the program: %x", more)
	}
}

// ignoredSignals reads the set of ignored signals in the status of a process.
func ignoredSignals(t *testing.T, status []byte) uint64 {
	t.Helper()
	_, rest, found := strings.Cut(string(status), "SigIgn:")
	digits, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	set, err := strconv.ParseUint(digits, 16, 64)
	if !found || err != nil {
		t.Fatalf("no set of ignored signals in %q: %v", status, err)
	}
	return set
}

// Children that the supervisor had before are left alone when a killed
// guardian's orphans are killed.
func TestForeignChildrenSurvive(t *testing.T) {
	foreign, err := os.StartProcess("/bin/sleep", []string{"sleep", "60"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	r := begin(t, newTerm(t, time.Hour), stubborn["daemon in its own session"])
	last := r.file("last")
	r.signalGuardian(syscall.SIGKILL)
	r.wait()
	r.dead(last)
	if err := foreign.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the foreign child: %v", err)
	}
	if err := foreign.Kill(); err != nil {
		t.Error(err)
	}
	if _, err := foreign.Wait(); err != nil {
		t.Error(err)
	}
}
