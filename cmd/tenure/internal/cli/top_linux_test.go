package cli

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
)

// onTerminal is a program on a terminal of 80 columns and 24 lines.
type onTerminal struct {
	t       *testing.T
	command *exec.Cmd
	master  *os.File
	done    chan struct{} // closed when the program has ended

	mu      sync.Mutex
	written strings.Builder // what the terminal received
}

// launchOnTerminal starts the program on a new terminal.
func launchOnTerminal(t *testing.T, variables []string, args ...string) *onTerminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	p := &onTerminal{t: t, command: exec.Command(os.Args[0], args...), master: master, done: make(chan struct{})}
	p.command.Env = environment(variables...)
	p.command.Stdin, p.command.Stdout, p.command.Stderr = slave, slave, slave
	p.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() { // exits when the program has closed the terminal
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer)
			p.mu.Lock()
			p.written.Write(buffer[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	})
	go func() { // the cleanup waits for it
		defer close(p.done)
		_ = p.command.Wait() // the state says how it ended
	}()
	t.Cleanup(func() {
		_ = p.command.Process.Kill()
		<-p.done
		reading.Wait()
		_ = master.Close()
	})
	return p
}

func (p *onTerminal) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.written.String()
}

// shows waits until the terminal has received a text since the last key.
func (p *onTerminal) shows(text string) {
	p.t.Helper()
	eventually(p.t, "the text "+text, func() bool { return strings.Contains(p.output(), text) })
}

// press sends keys, and forgets what the terminal has received.
func (p *onTerminal) press(keys string) {
	p.t.Helper()
	p.mu.Lock()
	p.written.Reset()
	p.mu.Unlock()
	if _, err := p.master.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// exits waits for the end of the program.
func (p *onTerminal) exits(code int) {
	p.t.Helper()
	<-p.done
	if got := p.command.ProcessState.ExitCode(); got != code {
		p.t.Errorf("exit code %d, want %d: %q", got, code, p.output())
	}
}

// On a terminal the command shows who leads, a failover, and what an operator changes
// after a confirmation. It leaves the terminal as it was.
func TestTopOnTerminal(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	one := place.run(t, "--role", "billing", "--name", "one")
	one.await("acquired")
	two := place.run(t, "--role", "billing", "--name", "two")
	two.await("acquire_failed")
	top := launchOnTerminal(t, []string{"TERM=xterm", "NO_COLOR="}, place.with("top")...)
	top.shows("\x1b[?1049h")
	top.shows(">  billing")
	top.shows("\x1b[1m") // the title
	top.press("s")
	top.shows("step down one from billing? y to confirm")
	top.press("n")
	top.shows("canceled")
	top.press("sy")
	top.shows("two leads billing, term ")
	two.await("acquired")
	top.press("\t")
	top.shows(">  one")
	top.press("\x1b[Bdy")
	top.shows("node two is drain")
	one.await("acquired")
	top.press("q")
	top.exits(console.ExitDone)
	top.shows("\x1b[?25h\x1b[?1049l")
}

// Without colors there are none, and a signal ends the command as q does.
func TestTopWithoutColors(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	place.run(t, "--role", "billing", "--name", "one").await("acquired")
	for _, way := range []struct{ variables, flags []string }{
		{[]string{"TERM=xterm", "NO_COLOR=1"}, nil}, {[]string{"TERM=xterm", "NO_COLOR="}, []string{"--no-color"}},
	} {
		top := launchOnTerminal(t, way.variables, place.with(append([]string{"top"}, way.flags...)...)...)
		top.shows(">  billing")
		if err := top.command.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		top.exits(console.ExitDone)
		top.shows("\x1b[?1049l")
		if text := top.output(); strings.Contains(text, "\x1b[1m") || strings.Contains(text, "\x1b[7m") {
			t.Errorf("%v: colors in %q", way, text)
		}
	}
}

// Without a terminal the command says what to use.
func TestTopNeedsTerminal(t *testing.T) {
	t.Parallel()
	got := invoke(t, newPlace(t).with("top")...).want(t, console.ExitUsage)
	if !strings.Contains(got.stderr, "tenure status --watch") {
		t.Errorf("%q", got.stderr)
	}
}

// On a terminal, the roles are redrawn in place within its width, until a signal.
func TestStatusWatchOnTerminal(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	one := place.run(t, "--role", "billing", "--name", "one")
	one.await("acquired")
	watch := launchOnTerminal(t, []string{"TERM=xterm"}, place.with("status", "--watch")...)
	watch.shows("as of ")
	watch.shows("billing  leads  one")
	one.signal(syscall.SIGTERM)
	watch.shows("billing  vacant")
	if err := watch.command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	watch.exits(console.ExitDone)
	for line := range strings.Lines(watch.output()) {
		if strings.Contains(line, "billing") && len(line) > 90 { // with the sequence that ends it
			t.Errorf("a line is too long: %q", line)
		}
	}
}
