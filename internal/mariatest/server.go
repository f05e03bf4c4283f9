package mariatest

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/sandbox"
)

// timeout bounds each operation on a server.
const timeout = 60 * time.Second

// Options says what server to start. The zero value starts one made for speed.
type Options struct {
	// Settings are system variables by name, as in "innodb_lock_wait_timeout";
	// the server's port and directories are not among them.
	Settings map[string]string
	// Environment is added to the server's, as NAME=value.
	Environment []string
}

// Server is a MariaDB server for tests, and its data directory while it is
// stopped. Its methods may be called from several goroutines; those that take a
// test fail it immediately if they cannot do what they promise.
type Server struct {
	Host   string // a loopback address
	Port   int    // kept over restarts
	Socket string // the path of the Unix socket

	box         *sandbox.Sandbox
	directory   string
	installed   installation
	settings    map[string]string
	environment []string

	mu      sync.Mutex // serializes starting, stopping and pausing
	process *sandbox.Process
	known   bool // a test may use the port
	paused  bool
}

// Shared returns the server that all tests of the package share. It is started
// for the first who asks. Tests must not stop or pause it.
func Shared(t testing.TB) *Server {
	t.Helper()
	require(t)
	server, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	server.showLog(t)
	return server
}

// Start starts a server for this test alone, ended with the test.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	require(t)
	server, err := newServer(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(server.stop("kill"), os.RemoveAll(server.directory)); err != nil {
			t.Error(err)
		}
	})
	server.showLog(t)
	return server
}

// showLog makes the server's log part of the test's output if the test fails.
func (s *Server) showLog(t testing.TB) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of the server on port %d ends with:\n%s", s.Port, s.Log())
		}
	})
}

// newServer makes a data directory and starts a server on it.
func newServer(options Options) (*Server, error) {
	installed, err := installed()
	if err != nil {
		return nil, err
	}
	box, err := openSandbox()
	if err != nil {
		return nil, err
	}
	directory, err := box.Place()
	if err != nil {
		return nil, err
	}
	server := &Server{
		Host: sandbox.Host, Socket: filepath.Join(directory, "socket"),
		box: box, directory: directory, installed: installed, settings: defaults(options), environment: options.Environment,
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := server.populate(ctx); err != nil {
		return nil, err
	}
	add(server)
	err = server.start(ctx)
	return server, err
}

// defaults makes a small server that starts quickly. It survives its own crash,
// not the machine's.
func defaults(options Options) map[string]string {
	settings := map[string]string{
		"aria_pagecache_buffer_size":     "1M",
		"character_set_server":           "utf8mb4",
		"debug_no_sync":                  "ON", // a drop of a database would wait for the disk, and everybody for it
		"innodb_buffer_pool_size":        "16M",
		"innodb_flush_log_at_trx_commit": "2",
		"innodb_flush_method":            "nosync",
		"innodb_log_file_size":           logSize,
		"innodb_use_native_aio":          "OFF", // the kernel's requests are few, and shared by all servers of a machine
		"key_buffer_size":                "1M",
		"max_connections":                "200",
		"performance_schema":             "OFF",
		"skip_name_resolve":              "ON",
	}
	maps.Copy(settings, options.Settings)
	return settings
}

// logSize is the size of InnoDB's log. A server whose setting differs from its
// files takes the time to write them anew.
const logSize = "8M"

// populate fills the data directory.
func (s *Server) populate(ctx context.Context) error {
	arguments := []string{
		"--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve",
		"--innodb-log-file-size=" + logSize, "--innodb-use-native-aio=OFF",
	}
	return s.box.CopyTemplate(ctx, s.installed.server, arguments, s.data(), func(path string) error {
		own := []string{"--no-defaults", "--datadir=" + path, "--tmpdir=" + filepath.Dir(path)}
		return s.box.Execute(ctx, s.installed.initialize, append(own, arguments...)...)
	})
}

func (s *Server) data() string { return filepath.Join(s.directory, "data") }

// arguments is the command line of the server.
func (s *Server) arguments() []string {
	arguments := []string{
		"--no-defaults", "--datadir=" + s.data(), "--socket=" + s.Socket, "--bind-address=" + s.Host,
		"--port=" + strconv.Itoa(s.Port), "--pid-file=" + filepath.Join(s.directory, "server.pid"),
		// A server that starts deletes what others have in a directory that they share.
		"--tmpdir=" + s.directory,
	}
	for _, name := range slices.Sorted(maps.Keys(s.settings)) {
		arguments = append(arguments, "--"+name+"="+s.settings[name])
	}
	return arguments
}

// Stop stops the server, cleanly by "term" or as in a crash by "kill", and waits
// until its process has ended. A paused server is resumed for it.
func (s *Server) Stop(t testing.TB, mode string) {
	t.Helper()
	s.do(t, func(context.Context) error { return s.stop(mode) })
}

// Start starts the server again after Stop, on its data and its port, and waits
// until it accepts connections.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	s.do(t, s.start)
}

// Restart stops the server in a mode of [Server.Stop] and starts it again.
func (s *Server) Restart(t testing.TB, mode string) {
	t.Helper()
	s.Stop(t, mode)
	s.Start(t)
}

// Pause stops the server in its tracks: it keeps its connections and answers
// nothing until [Server.Resume].
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	s.do(t, func(context.Context) error { return s.pause(true) })
}

// Resume continues a paused server.
func (s *Server) Resume(t testing.TB) {
	t.Helper()
	s.do(t, func(context.Context) error { return s.pause(false) })
}

func (s *Server) do(t testing.TB, operation func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := operation(ctx); err != nil {
		t.Fatal(err)
	}
}

// Log returns the end of the server's log, at most 8 KiB.
func (s *Server) Log() string { return sandbox.LogTail(s.logPath()) }

func (s *Server) logPath() string { return filepath.Join(s.directory, "log") }
