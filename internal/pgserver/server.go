package pgserver

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/exactly-one/tenure/internal/sandbox"
)

// Superuser is the name of the superuser of every server here.
const Superuser = "postgres"

// startTimeout bounds the start of a server whose caller sets no deadline.
const startTimeout = 60 * time.Second

// Options says what server to start. The zero value starts the newest version
// found, made for speed.
type Options struct {
	// Version is the major version, as in "17". Default: the first of
	// [Installations].
	Version string
	// Settings are server settings by name; the server's port and directories
	// are not among them.
	Settings map[string]string
	// HBA holds lines of pg_hba.conf that stand before those which let everybody
	// in.
	HBA []string
	// Private takes connections over the Unix socket alone, which only the server's
	// account and root can reach: use [Server.SocketDSN].
	Private bool
	// Durable keeps fsync and full_page_writes on. Without them a server still
	// survives its own crash and its restarts, but not the machine's.
	Durable bool
	// Environment is added to the server's, as NAME=value.
	Environment []string
	// Fresh runs initdb for this server alone, which takes a second. All others
	// of one version in a sandbox start from copies and have the same system
	// identifier.
	Fresh bool
}

// Server is one PostgreSQL server, and its data directory while it is stopped.
// Its methods may be called from several goroutines.
type Server struct {
	Host         string // a loopback address
	Port         int    // kept over restarts
	Socket       string // the directory of the Unix socket
	Data         string // the data directory
	Installation Installation

	sandbox *Sandbox
	logPath string
	hba     []string
	added   []string // to the environment

	mu       sync.Mutex // serializes starting, stopping and configuring
	settings map[string]string
	process  *sandbox.Process // nil while stopped
	known    bool             // a caller may use the port
}

// Start makes a new data directory and starts a server on it. The context
// bounds the start only.
func (s *Sandbox) Start(ctx context.Context, options Options) (*Server, error) {
	installation, err := Find(options.Version)
	if err != nil {
		return nil, err
	}
	server, err := s.newServer(installation, options)
	if err != nil {
		return nil, err
	}
	if err := s.populate(ctx, installation, server.Data, options.Fresh); err != nil {
		return nil, err
	}
	s.add(server)
	err = server.Start(ctx)
	return server, err
}

func (s *Sandbox) newServer(installation Installation, options Options) (*Server, error) {
	directory, err := s.files.Place()
	if err != nil {
		return nil, err
	}
	server := &Server{
		Host: sandbox.Host, Socket: directory, Data: filepath.Join(directory, "data"), Installation: installation,
		sandbox: s, logPath: filepath.Join(directory, "log"), hba: options.HBA, added: options.Environment, settings: defaults(options),
	}
	return server, nil
}

func defaults(options Options) map[string]string {
	settings := map[string]string{
		"max_connections": "200",
		"shared_buffers":  "32MB",
		"log_line_prefix": "%m [%p] %q%a: ",
	}
	if options.Private {
		settings["listen_addresses"] = ""
	}
	if !options.Durable {
		settings["fsync"] = "off"
		settings["full_page_writes"] = "off"
	}
	maps.Copy(settings, options.Settings)
	return settings
}

// Start starts a server that is stopped, on its data and its port, and waits
// until it accepts connections.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.start(ctx)
}

// Restart stops the server if it runs and starts it again.
func (s *Server) Restart(ctx context.Context, mode StopMode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.stop(ctx, mode); err != nil {
		return err
	}
	return s.start(ctx)
}

// Stop stops the server and waits until its process has ended. It does nothing
// if the server is stopped already.
func (s *Server) Stop(ctx context.Context, mode StopMode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stop(ctx, mode)
}

// Remove stops the server abruptly and removes everything it wrote.
func (s *Server) Remove(ctx context.Context) error {
	if err := s.Stop(ctx, Immediate); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Dir(s.Data))
}

func (s *Server) start(ctx context.Context) error {
	if s.running() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		if s.Port == 0 {
			port, err := sandbox.FreePort()
			if err != nil {
				return err
			}
			s.Port = port
		}
		if err := s.writeConfiguration(); err != nil {
			return err
		}
		process, err := s.launch(ctx)
		if err == nil {
			s.process, s.known = process, true
			return nil
		}
		if s.known || ctx.Err() != nil || sandbox.TryPort(s.Port) == nil {
			return fmt.Errorf("start PostgreSQL %s: %w\n%s", s.Installation.Version, err, s.Log())
		}
		s.Port = 0 // another program took the port in the meantime
	}
}

func (s *Server) running() bool { return s.process != nil && !s.process.Ended() }

// DSN returns a connection string for the superuser and the database postgres,
// over TCP.
func (s *Server) DSN() string { return s.DSNFor(Superuser, "postgres") }

// DSNFor returns a connection string for a user and a database, over TCP.
func (s *Server) DSNFor(user, database string) string {
	dsn := url.URL{
		Scheme: "postgres", User: url.User(user), Host: s.Host + ":" + strconv.Itoa(s.Port), Path: "/" + database,
		RawQuery: "sslmode=disable",
	}
	return dsn.String()
}

// SocketDSN is DSN over the Unix socket.
func (s *Server) SocketDSN() string {
	query := url.Values{"host": {s.Socket}, "port": {strconv.Itoa(s.Port)}, "user": {Superuser}, "sslmode": {"disable"}}
	return "postgres:///postgres?" + query.Encode()
}

// PID returns the process id of the server's first process, the postmaster; 0
// while the server is stopped.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return 0
	}
	return s.process.PID()
}

// Log returns the end of the server's log, at most 8 KiB.
func (s *Server) Log() string { return sandbox.LogTail(s.logPath) }

// LogPath returns the file that the server logs to, over restarts.
func (s *Server) LogPath() string { return s.logPath }
