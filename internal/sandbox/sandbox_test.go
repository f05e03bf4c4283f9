package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newSandbox(t *testing.T) *Sandbox {
	t.Helper()
	sandbox, err := New(Kind{Name: "test", Accounts: []string{"nobody"}, PIDFile: "pid", Signal: "KILL"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sandbox.Close(); err != nil {
			t.Error(err)
		}
	})
	return sandbox
}

func TestCloseEndsWhatRunsAndRemovesTheDirectory(t *testing.T) {
	t.Parallel()
	sandbox := newSandbox(t)
	place, err := sandbox.Place()
	if err != nil {
		t.Fatal(err)
	}
	// A process that takes no notice of SIGTERM, as a server that hangs.
	log := filepath.Join(place, "log")
	process, err := sandbox.Launch(log, "/bin/sh", "-c", "trap '' TERM; exec sleep 60")
	if err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(process.PID()) + "\n"
	if err := os.WriteFile(filepath.Join(place, "pid"), []byte(pid), 0o600); err != nil {
		t.Fatal(err)
	}
	if process.Ended() {
		t.Fatal(process.Failure())
	}
	if err := sandbox.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-process.Done():
	case <-time.After(10 * time.Second):
		t.Error("the process still runs")
		_ = process.Signal(syscall.SIGKILL)
		<-process.Done()
	}
	if err := process.Failure(); !strings.Contains(err.Error(), "killed") {
		t.Errorf("it ended on its own: %v", err)
	}
	if _, err := os.Stat(sandbox.Directory); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", sandbox.Directory, err)
	}
	if err := process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("a signal to a process that has ended: %v", err)
	}
}

// A process that is stopped obeys no signal but SIGKILL, and its children none that
// its parent would have passed on.
func TestCloseKillsStoppedProcesses(t *testing.T) {
	t.Parallel()
	sandbox := newSandbox(t)
	place, err := sandbox.Place()
	if err != nil {
		t.Fatal(err)
	}
	var processes []*Process
	var pids []int
	for range 2 {
		process, err := sandbox.Launch(filepath.Join(place, "log"), "sleep", "60")
		if err != nil {
			t.Fatal(err)
		}
		if err := process.Signal(PauseSignal); err != nil {
			t.Fatal(err)
		}
		processes, pids = append(processes, process), append(pids, process.PID())
	}
	sandbox.NoteStopped(pids...)
	sandbox.NoteStopped(pids[0]) // the other one continues
	if err := sandbox.Close(); err != nil {
		t.Fatal(err)
	}
	<-processes[0].Done() // or the test does not end
	if processes[1].Ended() {
		t.Error("a process was killed that was not noted last")
	}
	if err := processes[1].Signal(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	<-processes[1].Done()
}

func TestProgramsSeeACleanEnvironment(t *testing.T) {
	t.Setenv("PGHOST", "elsewhere.example")
	sandbox := newSandbox(t)
	err := sandbox.Execute(t.Context(), "/bin/sh", "-c", `env; echo "as $(id -u)"; exit 3`)
	if err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Fatalf("got %v", err)
	}
	if strings.Contains(err.Error(), "PGHOST") || !strings.Contains(err.Error(), "LC_ALL=C") {
		t.Errorf("it saw %v", err)
	}
	if strings.Contains(err.Error(), "as 0\n") {
		t.Error("it ran as root")
	}
}

func TestTemplateIsMadeOnce(t *testing.T) {
	t.Parallel()
	sandbox := newSandbox(t)
	var made atomic.Int64
	initialize := func(path string) error {
		made.Add(1)
		return sandbox.Execute(context.Background(), "/bin/sh", "-c", `mkdir "$1" && echo content > "$1/file"`, "sh", path)
	}
	for n := range 2 {
		place, err := sandbox.Place()
		if err != nil {
			t.Fatal(err)
		}
		target := filepath.Join(place, "data")
		if err := sandbox.CopyTemplate(t.Context(), "one", nil, target, initialize); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(filepath.Join(target, "file"))
		if err != nil || string(content) != "content\n" {
			t.Errorf("copy %d: %q, %v", n, content, err)
		}
	}
	if made.Load() != 1 {
		t.Errorf("made %d times", made.Load())
	}

	wrong := errors.New("no space")
	err := sandbox.CopyTemplate(t.Context(), "two", nil, filepath.Join(sandbox.Directory, "x"), func(string) error { return wrong })
	if !errors.Is(err, wrong) {
		t.Errorf("a template that cannot be made: %v", err)
	}
}

// TestTemplateIsKeptForOtherProcesses: each sandbox represents a process.
func TestTemplateIsKeptForOtherProcesses(t *testing.T) {
	KeepTemplates()
	t.Cleanup(func() { keepsTemplates.Store(false) })
	program := t.TempDir()
	kept, err := keptTemplate(program, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(kept); err != nil {
			t.Error(err)
		}
	})
	var made atomic.Int64
	copyTemplate := func(sandbox *Sandbox, program string) {
		initialize := func(path string) error {
			made.Add(1)
			return sandbox.Execute(context.Background(), "/bin/sh", "-c", `mkdir "$1" && echo content > "$1/file"`, "sh", path)
		}
		place, err := sandbox.Place()
		if err != nil {
			t.Error(err)
			return
		}
		if err := sandbox.CopyTemplate(t.Context(), program, nil, filepath.Join(place, "data"), initialize); err != nil {
			t.Error(err)
			return
		}
		content, err := os.ReadFile(filepath.Join(place, "data", "file"))
		if err != nil || string(content) != "content\n" {
			t.Errorf("the copy is %q, %v", content, err)
		}
	}
	var group sync.WaitGroup
	for range 4 { // all together: each may make one, and one is kept
		sandbox := newSandbox(t)
		group.Go(func() { copyTemplate(sandbox, program) })
	}
	group.Wait()
	before := made.Load()
	copyTemplate(newSandbox(t), program)
	if made.Load() != before {
		t.Error("a template was made although one is kept")
	}

	// A new release of the program has its own files.
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(program, later, later); err != nil {
		t.Fatal(err)
	}
	other, err := keptTemplate(program, nil)
	if err != nil || other == kept {
		t.Errorf("another release of the program: %s, %v; want another path", other, err)
	}
	recipe, err := keptTemplate(program, []string{"--encoding", "UTF8"})
	if err != nil || recipe == other {
		t.Errorf("another recipe: %s, %v; want another path", recipe, err)
	}
}

// A template that was not used for a week goes when another one is made.
func TestUnusedTemplatesAreRemoved(t *testing.T) {
	temporary, err := os.MkdirTemp("", "templates")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temporary) })  // the system cleans up the rest
	if err := os.Chmod(temporary, 0o755); err != nil { // the account that runs the servers uses it
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temporary)
	KeepTemplates()
	t.Cleanup(func() { keepsTemplates.Store(false) })
	use := func(program string) string {
		t.Helper()
		sandbox := newSandbox(t)
		err := sandbox.CopyTemplate(t.Context(), program, nil, filepath.Join(sandbox.Directory, "data"), func(path string) error {
			return sandbox.Execute(t.Context(), "/bin/mkdir", path)
		})
		if err != nil {
			t.Fatal(err)
		}
		kept, err := keptTemplate(program, nil)
		if err != nil {
			t.Fatal(err)
		}
		return kept
	}
	unused, used := use("unused"), use("used")
	weekAgo := time.Now().Add(-7*24*time.Hour - time.Minute)
	for _, kept := range []string{unused, used} {
		if err := os.Chtimes(kept, weekAgo, weekAgo); err != nil {
			t.Fatal(err)
		}
	}
	use("used")
	use("new")
	if _, err := os.Stat(unused); !os.IsNotExist(err) {
		t.Errorf("the unused template: %v; want it removed", err)
	}
	if _, err := os.Stat(used); err != nil {
		t.Errorf("the template that was used again: %v", err)
	}
}

// TestForeignTemplatesAreRefused: what another user of the machine may have
// written is not started.
func TestForeignTemplatesAreRefused(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	if _, err := keptTemplate("program", nil); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(os.TempDir(), fmt.Sprintf("tenure-templates-%d", os.Geteuid()))
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := keptTemplate("program", nil); err == nil {
		t.Error("a folder that everyone may write was used")
	}
}

func TestPortsAreFree(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", Host+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := TryPort(listener.Addr().(*net.TCPAddr).Port); err == nil {
		t.Error("a port in use passes for free")
	}
	given := map[int]bool{}
	for range 3 * blockSize {
		port, err := FreePort()
		if err != nil || port < firstPort || port >= firstPort+ports || given[port] {
			t.Fatalf("got %d, %v after %d ports", port, err, len(given))
		}
		given[port] = true
	}
}

func TestLogTailKeepsTheEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(strings.Repeat("x", 10000)+"end"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := LogTail(path); len(got) != 8<<10 || !strings.HasSuffix(got, "xend") {
		t.Errorf("got %d bytes ending in %q", len(got), got[len(got)-4:])
	}
	if got := LogTail(path + "2"); !strings.Contains(got, "no such file") {
		t.Errorf("no log: %q", got)
	}
}

func TestMissingAccountIsReported(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("not root: servers run as the present user")
		if account, err := unprivileged([]string{"nobody-of-that-name"}); account != nil || err != nil {
			t.Errorf("got %v, %v", account, err)
		}
		return
	}
	_, err := unprivileged([]string{"nobody-of-that-name", "nor-that"})
	if want := "no account nobody-of-that-name or nor-that"; err == nil || !strings.Contains(fmt.Sprint(err), want) {
		t.Errorf("got %v", err)
	}
}
