package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// cleanUp waits until the owner of the sandbox closes it or dies. Then it kills
// the processes that the owner has stopped, since a stopped process obeys no other
// signal, ends the servers that still run, and removes the directory. A server that was
// killed leaves its file and, if that is PostgreSQL's, the id of its System V shared
// memory at the end of the seventh line. Only this script cleans up, so that the way taken after a kill is the way always taken.
const cleanUp = `
stopped=
while read -r pids; do stopped=$pids; done
[ -z "$stopped" ] || kill -KILL $stopped 2>/dev/null
for file in "$1"/*/"$2"; do
	[ -e "$file" ] || continue
	read -r pid < "$file"
	kill "-$3" "$pid"
	tries=0
	while [ -e "$file" ] && [ $tries -lt 100 ] && kill -0 "$pid"; do
		tries=$((tries + 1))
		sleep 0.05
	done
	[ -e "$file" ] || continue
	kill -KILL "$pid"
	memory=$(sed -n '7s/.* //p' "$file")
	[ -z "$memory" ] || ipcrm -m "$memory"
done 2>/dev/null
rm -rf "$1"
`

// Kind says what servers a sandbox is for.
type Kind struct {
	// Name is part of the directory's name: "pg" makes tenure-pg-….
	Name string
	// Accounts are who may run the servers if this process is root, the preferred
	// one first.
	Accounts []string
	// PIDFile is the path, inside a server's place, of the file whose first line
	// is the server's process id, and which is gone when the server has ended.
	PIDFile string
	// Signal makes a server end immediately, as kill names it: "QUIT".
	Signal string
	// OwnIPC says that no process of another server needs the server's System V
	// shared memory and semaphores. If this process is root on Linux, a server that
	// is killed leaves none.
	OwnIPC bool
}

// Sandbox is a temporary directory in which servers run. Its methods may be
// called from several goroutines.
type Sandbox struct {
	// Directory is the path of the directory.
	Directory string

	account   *account
	ownIPC    bool
	count     atomic.Int64
	mu        sync.Mutex
	templates map[string]*template

	caretaker *Caretaker
	close     func() error
}

// New makes a directory for servers. [Sandbox.Close] removes it; so does the end
// of this process.
func New(kind Kind) (*Sandbox, error) {
	account, err := unprivileged(kind.Accounts)
	if err != nil {
		return nil, err
	}
	directory, err := os.MkdirTemp("", "tenure-"+kind.Name+"-")
	if err != nil {
		return nil, err
	}
	sandbox := &Sandbox{Directory: directory, account: account, ownIPC: kind.OwnIPC, templates: map[string]*template{}}
	if sandbox.caretaker, err = NewCaretaker(cleanUp, directory, kind.PIDFile, kind.Signal); err != nil {
		return nil, errors.Join(err, os.RemoveAll(directory))
	}
	sandbox.close = sync.OnceValue(sandbox.caretaker.Close)
	if err := account.own(directory); err != nil {
		return nil, errors.Join(err, sandbox.Close())
	}
	return sandbox, nil
}

// NoteStopped notes which processes are stopped at the moment, all of them: they are
// killed if the sandbox ends before they continue.
func (s *Sandbox) NoteStopped(pids ...int) {
	_, _ = fmt.Fprintln(s.caretaker, strings.Trim(fmt.Sprint(pids), "[]")) // without the caretaker, they stay as they are
}

// Close ends the servers that still run, removes everything and waits until that
// is done. It is idempotent.
func (s *Sandbox) Close() error { return s.close() }

// Place makes a directory for one more server.
func (s *Sandbox) Place() (string, error) {
	directory := filepath.Join(s.Directory, strconv.FormatInt(s.count.Add(1), 10))
	if err := os.Mkdir(directory, 0o700); err != nil {
		return "", err
	}
	return directory, s.Own(directory)
}

// Own gives a file to the account that runs the servers.
func (s *Sandbox) Own(path string) error { return s.account.own(path) }

// Execute runs one of the server's programs to its end. An error carries what
// the program printed.
func (s *Sandbox) Execute(ctx context.Context, program string, arguments ...string) error {
	command := exec.CommandContext(ctx, program, arguments...)
	s.prepare(command)
	command.WaitDelay = time.Second
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(program), err, output)
	}
	return nil
}

// prepare lets a command run in the sandbox, as the account. Servers and their
// programs see nothing of the user's environment, which would point them
// elsewhere, and speak English.
func (s *Sandbox) prepare(command *exec.Cmd) {
	command.Dir = s.Directory
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	s.account.run(command)
	if s.ownIPC {
		isolateIPC(command)
	}
}
