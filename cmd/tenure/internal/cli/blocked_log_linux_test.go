package cli

import (
	"bufio"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// fullPipe returns a pipe that is full and not read: writing to it blocks until the
// test ends.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	var ends [2]int
	err := unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(ends[0]) })
	for size := 4096; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = unix.Write(ends[1], make([]byte, size))
		}
	}
	if err != unix.EAGAIN {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(ends[1], false); err != nil {
		t.Fatal(err)
	}
	full := os.NewFile(uintptr(ends[1]), "full pipe")
	t.Cleanup(func() { _ = full.Close() })
	return full
}

// If the log blocks, the supervisor still learns that its command has ended: it
// releases the role and exits.
func TestBlockedLogDoesNotDelayEndOfCommand(t *testing.T) {
	t.Parallel()
	node := exec.Command(os.Args[0], newPlace(t).guarded("exit 7", "--restart", "never")...)
	node.Env, node.Stderr = environment(), fullPipe(t)
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	limit := time.AfterFunc(patience, func() { _ = node.Process.Kill() })
	defer limit.Stop()
	_ = node.Wait() // the state says how it ended
	if code := node.ProcessState.ExitCode(); code != 7 {
		t.Errorf("the program ended with %v after its command had ended with 7", node.ProcessState)
	}
}

// If the log of an agent blocks, the agent still serves its nodes, and ends when it is
// asked to.
func TestBlockedLogDoesNotDelayAgent(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	path := socketPath(t)
	agent := exec.Command(os.Args[0], newPlace(t).with("agent", "--socket", path)...)
	agent.Env, agent.Stderr = environment(), fullPipe(t)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	limit := time.AfterFunc(2*patience, func() { _ = agent.Process.Kill() })
	defer limit.Stop()
	defer func() {
		_ = agent.Process.Signal(unix.SIGTERM)
		_ = agent.Wait() // the state says how it ended
		if !agent.ProcessState.Success() {
			t.Errorf("the agent ended with %v", agent.ProcessState)
		}
	}()
	node := launch(t, "run", "--agent", path, "--role", "billing", "--", "sh", "-c", "echo $TENURE_TERM; exec sleep 1000")
	if _, ok := node.line(); !ok {
		t.Errorf("the node does not lead: %s", node.log())
	}
}

// If the log blocks, schedules still run at each tick.
func TestBlockedLogDoesNotDelaySchedules(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	path := newPlace(t).schedules(t, `name = "tick"`+"\n"+`schedule = "* * * * * *"`+"\n"+`command = "echo $TENURE_RUN"`)
	node := exec.Command(os.Args[0], "cron", "run", "--config", path, "--role", "jobs")
	node.Env, node.Stderr = environment(), fullPipe(t)
	output, err := node.StdoutPipe()
	if err == nil {
		err = node.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	limit := time.AfterFunc(patience, func() { _ = node.Process.Kill() })
	defer limit.Stop()
	runs := bufio.NewScanner(output)
	for n := range 3 {
		if !runs.Scan() {
			t.Errorf("only %d commands ran: %v", n, runs.Err())
			break
		}
	}
	_ = node.Process.Kill()
	_ = node.Wait() // it was killed
}
