package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// Process is a server's first process. Its methods may be called from several
// goroutines.
type Process struct {
	command *exec.Cmd
	done    chan struct{} // closed when it has ended and err is set
	err     error
}

// Launch starts a program in the sandbox, as [Sandbox.Execute] does, and appends
// what it prints to a log. Who launches a process ends it and waits for
// [Process.Done].
func (s *Sandbox) Launch(logPath, program string, arguments ...string) (*Process, error) {
	return s.LaunchWith(nil, logPath, program, arguments...)
}

// LaunchWith is [Sandbox.Launch] with more in the environment, as NAME=value.
func (s *Sandbox) LaunchWith(environment []string, logPath, program string, arguments ...string) (*Process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the program has its own descriptor

	command := exec.Command(program, arguments...)
	s.prepare(command)
	command.Env = append(command.Env, environment...)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return nil, err
	}
	started := &Process{command: command, done: make(chan struct{})}
	go func() { // exits with the process; Done shows it
		started.err = command.Wait()
		close(started.done)
	}()
	return started, nil
}

// PID returns the process id.
func (p *Process) PID() int { return p.command.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Failure says how a process ended that should run. It waits for the end.
func (p *Process) Failure() error {
	<-p.done
	if p.err != nil {
		return fmt.Errorf("it ended: %w", p.err)
	}
	return errors.New("it ended")
}

// Signal sends a signal. A process that has ended takes it without an error.
func (p *Process) Signal(signal os.Signal) error {
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// LogTail returns the end of a log, at most 8 KiB, or why it cannot be read.
func LogTail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(content[max(0, len(content)-8<<10):])
}
