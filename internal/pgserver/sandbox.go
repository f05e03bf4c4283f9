package pgserver

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/exactly-one/tenure/internal/sandbox"
)

// kind says how the sandbox ends servers whose owner is gone. A server removes its postmaster.pid when it ends.
var kind = sandbox.Kind{
	Name:     "pg",
	Accounts: []string{"postgres", "nobody", "daemon"},
	PIDFile:  "data/postmaster.pid",
	Signal:   "QUIT",
}

// Sandbox is a temporary directory in which servers run. Its methods may be
// called from several goroutines.
type Sandbox struct {
	files *sandbox.Sandbox
	close func() error

	mu      sync.Mutex
	servers []*Server
}

// NewSandbox makes a directory for servers. [Sandbox.Close] removes it; so does
// the end of this process.
func NewSandbox() (*Sandbox, error) {
	files, err := sandbox.New(kind)
	if err != nil {
		return nil, err
	}
	box := &Sandbox{files: files}
	box.close = sync.OnceValue(box.cleanUp)
	return box, nil
}

// Close stops all servers of the sandbox abruptly, as a crash would, removes
// everything and waits until that is done. It is idempotent.
func (s *Sandbox) Close() error { return s.close() }

func (s *Sandbox) cleanUp() error {
	s.mu.Lock()
	servers := s.servers
	s.mu.Unlock()

	// Stopping them here rather than by the caretaker reaps the processes.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var stopped error
	for _, server := range servers {
		stopped = errors.Join(stopped, server.Stop(ctx, Immediate))
	}
	return errors.Join(stopped, s.files.Close())
}

func (s *Sandbox) add(server *Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers = append(s.servers, server)
}

// populate fills a new data directory.
func (s *Sandbox) populate(ctx context.Context, installation Installation, data string, fresh bool) error {
	arguments := []string{"--username", Superuser, "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync"}
	initdb := func(path string) error {
		return s.files.Execute(ctx, installation.program("initdb"), append([]string{"--pgdata", path}, arguments...)...)
	}
	if fresh {
		return initdb(data)
	}
	return s.files.CopyTemplate(ctx, installation.Bin, arguments, data, initdb)
}
