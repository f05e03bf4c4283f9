package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// StopMode says how a server is stopped; see the manual's page on pg_ctl.
type StopMode string

// The ways to stop a server.
const (
	Fast      StopMode = "fast"      // ends all sessions, then shuts down cleanly
	Immediate StopMode = "immediate" // without a checkpoint: the next start recovers as after a crash
	Smart     StopMode = "smart"     // waits for the sessions to end by themselves
)

func (m StopMode) signal() (os.Signal, error) {
	switch m {
	case Fast:
		return syscall.SIGINT, nil
	case Immediate:
		return syscall.SIGQUIT, nil
	case Smart:
		return syscall.SIGTERM, nil
	default:
		return nil, fmt.Errorf("unknown stop mode %q", string(m))
	}
}

// process is a running postmaster.
type process struct {
	command *exec.Cmd
	done    chan struct{} // closed when it has ended and err is set
	err     error
}

func (p *process) pid() int { return p.command.Process.Pid }

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// launch starts the postmaster and waits until it accepts connections. If it
// does not, launch returns an error and no process is left.
func (s *Server) launch(ctx context.Context) (*process, error) {
	log, err := os.OpenFile(s.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the server has its own descriptor

	command := exec.Command(s.Installation.program("postgres"), "-D", s.Data)
	command.Dir = s.sandbox.directory
	command.Env = environment()
	command.Stdout, command.Stderr = log, log
	s.sandbox.account.run(command)
	if err := command.Start(); err != nil {
		return nil, err
	}
	started := &process{command: command, done: make(chan struct{})}
	go func() {
		started.err = command.Wait()
		close(started.done)
	}()

	if err := s.awaitReady(ctx, started); err != nil {
		_ = command.Process.Signal(syscall.SIGQUIT) // it may have ended already
		<-started.done
		return nil, err
	}
	return started, nil
}

// awaitReady waits for the status line that the postmaster writes to its PID
// file, as pg_ctl does.
func (s *Server) awaitReady(ctx context.Context, p *process) error {
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		if s.status(p.pid()) == "ready" {
			return nil
		}
		select {
		case <-poll.C:
		case <-p.done:
			if p.err != nil {
				return fmt.Errorf("it ended: %w", p.err)
			}
			return errors.New("it ended")
		case <-ctx.Done():
			return fmt.Errorf("it accepts no connections: %w", ctx.Err())
		}
	}
}

// AwaitReady waits until the running server accepts connections: for use after
// it was made to restart by itself, for instance by the death of a backend.
func (s *Server) AwaitReady(ctx context.Context) error {
	s.mu.Lock()
	running := s.process
	s.mu.Unlock()
	if running == nil {
		return errors.New("the server is stopped")
	}
	return s.awaitReady(ctx, running)
}

// status returns the last line of postmaster.pid, if that file is this
// process's: "starting", "stopping", "ready" or "standby".
func (s *Server) status(pid int) string {
	const pidLine, statusLine = 0, 7
	content, err := os.ReadFile(filepath.Join(s.Data, "postmaster.pid"))
	if err != nil {
		return ""
	}
	lines := bytes.Split(content, []byte("\n"))
	if len(lines) <= statusLine || string(bytes.TrimSpace(lines[pidLine])) != strconv.Itoa(pid) {
		return ""
	}
	return string(bytes.TrimSpace(lines[statusLine]))
}

// stop stops the server. s.mu is held.
func (s *Server) stop(ctx context.Context, mode StopMode) error {
	signal, err := mode.signal()
	if err != nil || s.process == nil {
		return err
	}
	if err := s.process.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping PostgreSQL: %w", err)
	}
	select {
	case <-s.process.done:
		s.process = nil
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stopping PostgreSQL (%s): %w", mode, ctx.Err())
	}
}

// Ports are taken from below the range that systems give to outgoing
// connections, or such a connection could take a server's port while the server
// restarts.
const firstPort, ports = 15000, 15000

func freePort() (int, error) {
	var err error
	for range 100 {
		port := firstPort + rand.IntN(ports)
		if err = tryPort(port); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port found: %w", err)
}

func tryPort(port int) error {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return listener.Close()
}
