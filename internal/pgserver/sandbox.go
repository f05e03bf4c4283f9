package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// caretaker waits until the owner of the sandbox closes it or dies, then stops
// the servers that still run and removes the directory. It is a process of its
// own because a process that is killed can clean up nothing; and it is the only
// one that cleans up, so that the way taken after a kill is the way always
// taken. A server removes its postmaster.pid when it ends.
const caretaker = `
while read -r _; do :; done
for file in "$1"/*/data/postmaster.pid; do
	[ -e "$file" ] || continue
	read -r pid < "$file"
	kill -QUIT "$pid"
	tries=0
	while [ -e "$file" ] && [ $tries -lt 100 ] && kill -0 "$pid"; do
		tries=$((tries + 1))
		sleep 0.05
	done
	[ -e "$file" ] && kill -KILL "$pid"
done 2>/dev/null
rm -rf "$1"
`

// Sandbox is a temporary directory in which servers run. Its methods may be
// called from several goroutines.
type Sandbox struct {
	directory string
	account   *account

	mu        sync.Mutex
	templates map[string]*template
	servers   []*Server
	count     atomic.Int64

	caretaker *exec.Cmd
	lifeline  io.Closer
	close     func() error
}

// NewSandbox makes a directory for servers. [Sandbox.Close] removes it; so does
// the end of this process.
func NewSandbox() (*Sandbox, error) {
	account, err := unprivileged()
	if err != nil {
		return nil, err
	}
	directory, err := os.MkdirTemp("", "tenure-pg-")
	if err != nil {
		return nil, err
	}
	sandbox := &Sandbox{directory: directory, account: account, templates: map[string]*template{}}
	sandbox.close = sync.OnceValue(sandbox.cleanUp)
	if err := sandbox.startCaretaker(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(directory))
	}
	if err := account.own(directory); err != nil {
		return nil, errors.Join(err, sandbox.Close())
	}
	return sandbox, nil
}

func (s *Sandbox) startCaretaker() error {
	s.caretaker = exec.Command("/bin/sh", "-c", caretaker, "caretaker", s.directory)
	s.caretaker.Dir = "/"
	(*account)(nil).run(s.caretaker)
	lifeline, err := s.caretaker.StdinPipe()
	if err != nil {
		return err
	}
	s.lifeline = lifeline
	if err := s.caretaker.Start(); err != nil {
		return fmt.Errorf("starting the caretaker of %s: %w", s.directory, err)
	}
	return nil
}

// Close stops all servers of the sandbox at once, as a crash would, removes
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
	err := s.lifeline.Close()
	return errors.Join(stopped, err, s.caretaker.Wait())
}

// place makes a directory for one more server.
func (s *Sandbox) place() (string, error) {
	directory := filepath.Join(s.directory, strconv.FormatInt(s.count.Add(1), 10))
	if err := os.Mkdir(directory, 0o700); err != nil {
		return "", err
	}
	return directory, s.account.own(directory)
}

func (s *Sandbox) add(server *Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers = append(s.servers, server)
}

// execute runs one of the server's programs to its end. An error carries what
// the program printed.
func (s *Sandbox) execute(ctx context.Context, program string, arguments ...string) error {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Dir = s.directory
	command.Env = environment()
	command.WaitDelay = time.Second
	s.account.run(command)
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(program), err, output)
	}
	return nil
}

// environment is what servers and their programs see: nothing of the libpq
// variables, which would point them elsewhere, and messages in English.
func environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
}

// template is a data directory that new servers start from: a copy takes a
// tenth of the time that initdb does.
type template struct {
	once sync.Once
	path string
	err  error
}

// initialised returns the path of the template for an installation.
func (s *Sandbox) initialised(ctx context.Context, installation Installation) (string, error) {
	s.mu.Lock()
	shared, ok := s.templates[installation.Bin]
	if !ok {
		shared = &template{}
		s.templates[installation.Bin] = shared
	}
	s.mu.Unlock()
	shared.once.Do(func() {
		directory, err := s.place()
		if err != nil {
			shared.err = err
			return
		}
		shared.path = filepath.Join(directory, "template")
		shared.err = s.initdb(ctx, installation, shared.path)
	})
	return shared.path, shared.err
}

func (s *Sandbox) initdb(ctx context.Context, installation Installation, path string) error {
	return s.execute(ctx, installation.program("initdb"), "--pgdata", path, "--username", Superuser,
		"--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync")
}

// populate fills a new data directory.
func (s *Sandbox) populate(ctx context.Context, installation Installation, data string, fresh bool) error {
	if fresh {
		return s.initdb(ctx, installation, data)
	}
	source, err := s.initialised(ctx, installation)
	if err != nil {
		return err
	}
	return s.execute(ctx, "/bin/cp", "-a", source, data)
}
