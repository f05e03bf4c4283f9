package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/sandbox"
)

// StopMode says how a server is stopped; see the manual's page on pg_ctl.
type StopMode string

// The ways to stop a server.
const (
	Fast      StopMode = "fast"      // ends all sessions, then shuts down cleanly
	Immediate StopMode = "immediate" // without a checkpoint: the next start recovers as after a crash
	Smart     StopMode = "smart"     // waits until all clients have disconnected
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

// launch starts the postmaster and waits until it accepts connections. If it
// does not, launch returns an error and no process is left.
func (s *Server) launch(ctx context.Context) (*sandbox.Process, error) {
	started, err := s.sandbox.files.LaunchWith(s.added, s.logPath, s.Installation.program("postgres"), "-D", s.Data)
	if err != nil {
		return nil, err
	}
	if err := s.awaitReady(ctx, started); err != nil {
		_ = started.Signal(syscall.SIGQUIT) // the error that is returned matters more
		<-started.Done()
		return nil, err
	}
	return started, nil
}

// awaitReady waits for the status line that the postmaster writes to its PID
// file, as pg_ctl does.
func (s *Server) awaitReady(ctx context.Context, p *sandbox.Process) error {
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		if s.status(p.PID()) == "ready" {
			return nil
		}
		select {
		case <-poll.C:
		case <-p.Done():
			return p.Failure()
		case <-ctx.Done():
			return fmt.Errorf("it accepts no connections: %w", ctx.Err())
		}
	}
}

// AwaitReady waits until the running server accepts connections: for use after
// a fault made it restart, for instance the death of a backend. The
// status in its PID file does not show such a restart.
func (s *Server) AwaitReady(ctx context.Context) error {
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.SocketDSN())
		if err == nil {
			return conn.Close(ctx)
		}
		s.mu.Lock()
		running := s.process
		s.mu.Unlock()
		if running == nil {
			return errors.New("the server is stopped")
		}
		select {
		case <-poll.C:
		case <-running.Done():
			return running.Failure()
		case <-ctx.Done():
			return fmt.Errorf("it accepts no connections: %w", err)
		}
	}
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
	if err := s.process.Signal(signal); err != nil {
		return fmt.Errorf("stop PostgreSQL: %w", err)
	}
	select {
	case <-s.process.Done():
		s.process = nil
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop PostgreSQL (%s): %w", mode, ctx.Err())
	}
}
