package mariatest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/exactly-one/tenure/internal/sandbox"
)

// pidFile is where the caretaker of the sandbox finds the server's process id.
// It is written here and not by the server, which does so late in its start.
const pidFile = "pid"

// start starts a server that is stopped and waits until it accepts connections.
func (s *Server) start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running() {
		return nil
	}
	for {
		if s.Port == 0 {
			port, err := sandbox.FreePort()
			if err != nil {
				return err
			}
			s.Port = port
		}
		err := s.launch(ctx)
		if err == nil {
			s.known = true
			return nil
		}
		if s.known || ctx.Err() != nil || sandbox.TryPort(s.Port) == nil {
			return fmt.Errorf("start MariaDB: %w\n%s", err, s.Log())
		}
		s.Port = 0 // another program took the port in the meantime
	}
}

// launch starts the process and waits until it accepts connections. If it does
// not, no process is left. s.mu is held.
func (s *Server) launch(ctx context.Context) error {
	process, err := s.box.LaunchWith(s.environment, s.logPath(), s.installed.server, s.arguments()...)
	if err != nil {
		return err
	}
	s.process, s.paused = process, false
	err = os.WriteFile(s.pidPath(), []byte(strconv.Itoa(process.PID())+"\n"), 0o600)
	if err == nil {
		err = s.awaitReady(ctx)
	}
	if err != nil {
		return errors.Join(err, s.end(syscall.SIGKILL))
	}
	return nil
}

// awaitReady waits until the server greets who connects.
func (s *Server) awaitReady(ctx context.Context) error {
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		err := s.greets()
		if err == nil && !s.process.Ended() { // or another program greeted
			return nil
		}
		select {
		case <-poll.C:
		case <-s.process.Done():
			return s.process.Failure()
		case <-ctx.Done():
			return fmt.Errorf("it accepts no connections: %w (%w)", ctx.Err(), err)
		}
	}
}

// greets connects and reads the beginning of the greeting: three bytes of
// length, a sequence number, and the version of the protocol.
func (s *Server) greets() error {
	conn, err := net.DialTimeout("tcp", s.address(), time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	var greeting [5]byte
	if _, err := io.ReadFull(conn, greeting[:]); err != nil {
		return err
	}
	if version := greeting[4]; version != 10 {
		return fmt.Errorf("the greeting has version %d, not 10", version)
	}
	return nil
}

// stop stops the server in a mode of [Server.Stop]. It does nothing if the server
// is stopped already.
func (s *Server) stop(mode string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	signals := map[string]os.Signal{"term": syscall.SIGTERM, "kill": syscall.SIGKILL}
	signal, ok := signals[mode]
	if !ok {
		return fmt.Errorf("unknown stop mode %q: known are term and kill", mode)
	}
	if s.process == nil {
		return nil
	}
	return s.end(signal)
}

// end makes the process end and waits until it has. s.mu is held.
func (s *Server) end(signal os.Signal) error {
	err := s.process.Signal(signal)
	if s.paused { // or it could not act on the signal
		err = errors.Join(err, s.process.Signal(sandbox.ResumeSignal))
	}
	if err != nil {
		return err
	}
	select {
	case <-s.process.Done():
	case <-time.After(timeout):
		return fmt.Errorf("MariaDB still runs %v after the signal to end (%v)\n%s", timeout, signal, s.Log())
	}
	s.process, s.paused = nil, false
	return os.Remove(s.pidPath())
}

// pause pauses the process, or resumes it.
func (s *Server) pause(pause bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return errors.New("the server is stopped")
	}
	signal := sandbox.ResumeSignal
	if pause {
		signal = sandbox.PauseSignal
	}
	if err := s.process.Signal(signal); err != nil {
		return err
	}
	s.paused = pause
	if pause {
		return awaitStopped(s.process.PID())
	}
	return nil
}

func (s *Server) running() bool { return s.process != nil && !s.process.Ended() }

// PID returns the server's process id; 0 while the server is stopped.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return 0
	}
	return s.process.PID()
}

func (s *Server) pidPath() string { return filepath.Join(s.directory, pidFile) }
