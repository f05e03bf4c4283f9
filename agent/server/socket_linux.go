package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exactly-one/tenure"
)

// socket is the agent's socket and the lock file to exclude a second agent.
type socket struct {
	path string
	lock *os.File

	mu       sync.Mutex
	listener *net.UnixListener // guarded by mu
	file     fs.FileInfo       // of the socket; guarded by mu
	closed   bool              // guarded by mu
}

// listen creates the socket.
func listen(path string) (*socket, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := checkDirectory(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("%w: %w", tenure.ErrInvalidConfig, err)
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", tenure.ErrInvalidConfig, err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = lock.Close() // nothing was written
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errors.New("another agent serves it")
		}
		return nil, fmt.Errorf("%w: %s: %w", tenure.ErrInvalidConfig, path, err)
	}
	s := &socket{path: path, lock: lock}
	if err := s.bind(); err != nil {
		_ = lock.Close() // nothing was written
		return nil, fmt.Errorf("%w: %w", tenure.ErrInvalidConfig, err)
	}
	return s, nil
}

// checkDirectory makes the directory of the socket, if it is missing, and returns
// an error if other users can replace the socket, or a directory above it.
func checkDirectory(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	// Where the path has symbolic links, the directories of the links count too.
	for _, path := range []string{dir, resolved} {
		if err := checkOwner(path, 0); err != nil {
			return err
		}
		for path != filepath.Dir(path) {
			path = filepath.Dir(path)
			if err := checkOwner(path, fs.ModeSticky); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkOwner returns an error if other users can replace files in a directory. In one with
// the permitted bit, the sticky bit, they can replace only their own files.
func checkOwner(dir string, permitted fs.FileMode) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	if int(owner) != os.Geteuid() && owner != 0 || info.Mode().Perm()&0o022 != 0 && info.Mode()&permitted == 0 {
		return fmt.Errorf("other users can replace the socket in %s: use a directory that only user %d can write to, like those above it", dir, os.Geteuid())
	}
	return nil
}

// bind replaces any file at the path by a new listener. The lock must be held.
func (s *socket) bind() error {
	if info, err := os.Lstat(s.path); err == nil {
		if info.Mode().Type() != fs.ModeSocket {
			return fmt.Errorf("%s exists and is not a socket", s.path)
		}
		if err := os.Remove(s.path); err != nil {
			return err
		}
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.path, Net: "unix"})
	if err != nil {
		return err
	}
	listener.SetUnlinkOnClose(false)
	err = os.Chmod(s.path, 0o600)
	info, statErr := os.Lstat(s.path)
	if err := errors.Join(err, statErr); err != nil {
		_ = listener.Close() // no node has connected
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = listener.Close() // no node has connected
		return net.ErrClosed
	}
	s.listener, s.file = listener, info
	return nil
}

// intact reports whether the socket is at its path.
func (s *socket) intact() bool {
	info, err := os.Lstat(s.path)
	return err == nil && os.SameFile(info, s.file)
}

// ours reports whether the lock of this process still excludes others.
func (s *socket) ours() bool {
	held, err := s.lock.Stat()
	if err != nil {
		return false
	}
	found, err := os.Lstat(s.path + ".lock")
	return err == nil && os.SameFile(held, found)
}

// close removes the socket, if it is this agent's, and stops listening.
func (s *socket) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.intact() && s.ours() {
		_ = os.Remove(s.path) // a file that is left is replaced by the next agent
	}
	_ = s.listener.Close() // also ends the accepting
	_ = s.lock.Close()     // nothing was written
}

// guardSocket accepts nodes and makes the socket again when its file was removed. If the
// lock file was removed too, another agent may serve the path: then this one keeps only
// its present nodes.
func (s *server) guardSocket(ctx context.Context, socket *socket) {
	accept := func() {
		listener := socket.listener // only this goroutine changes it
		s.group.Go(func() { s.accept(listener) })
	}
	accept()
	check := time.NewTicker(500 * time.Millisecond)
	defer check.Stop()
	reported := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-check.C:
		}
		socket.mu.Lock()
		broken := !socket.closed && !socket.intact()
		old := socket.listener
		socket.mu.Unlock()
		switch {
		case !broken:
			reported = false
			continue
		case !socket.ours():
			if !reported {
				s.cfg.Logger.Error("the agent's socket and lock file were removed: nodes cannot connect", "path", socket.path)
			}
			reported = true
			continue
		}
		if err := socket.bind(); err != nil {
			if !reported {
				s.cfg.Logger.Error("recreating the agent's socket failed", "path", socket.path, "error", err)
			}
			reported = true
			continue
		}
		s.cfg.Logger.Warn("the agent's socket was removed; it was recreated", "path", socket.path)
		_ = old.Close() // ends its accepting; its file is gone
		accept()
	}
}
