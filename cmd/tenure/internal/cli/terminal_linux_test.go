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
)

// onTerminal is a program on a terminal of 80 columns and 24 lines.
type onTerminal struct {
	t       *testing.T
	command *exec.Cmd
	master  *os.File
	done    chan struct{}  // closed when the program has ended
	read    sync.WaitGroup // done when all that it wrote was read

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
	p.read.Go(func() { // exits when the program has closed the terminal
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
		p.read.Wait()
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
