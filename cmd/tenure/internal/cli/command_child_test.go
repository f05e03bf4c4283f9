package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/program/settings"
	"github.com/exactly-one/tenure/internal/testkit"
)

// asChild is the first argument of a process of the test binary that is a
// command under test, or a descendant of one.
const asChild = "test-child"

// The ways in which a child resists being killed. Each is a word on its command
// line.
const (
	childStubborn   = "stubborn"   // it ignores SIGTERM
	childGeneration = "generation" // it has a grandchild that ignores SIGTERM
	childDaemon     = "daemon"     // it leaves a daemon in its group, whose parent has ended
	childSession    = "session"    // that daemon has its own Unix session
	childUnguarded  = "unguarded"  // it does not take the lock
)

// lockVariable holds the path of the lock that one tree at a time may hold, and
// ringVariable that of the socket to which children report events.
const (
	lockVariable = "TENURE_TEST_LOCK"
	ringVariable = "TENURE_TEST_RING"
)

// call is an event that a child reports.
type call struct {
	What     string `json:"what"` // started or overlap
	PID      int    `json:"pid"`
	Guardian int    `json:"guardian"`
	Node     string `json:"node"`
	Term     int64  `json:"term"`
}

// lockDescriptor is the lock in descendants of a child. All duplicates of a
// descriptor share an flock, so it lasts as long as any process of the tree runs.
const lockDescriptor = 3

// childMain is a child: it acquires the lock, which must be free, reports its start,
// and runs until it is killed.
func childMain(words []string) int {
	if len(words) >= 3 && words[0] == childEcho {
		return echoMain(words[1], words[2], len(words) > 3)
	}
	if len(words) == 5 && words[0] == childFenced {
		return exitOf(fencedMain(words[1], words[2], words[3], words[4]))
	}
	if len(words) == 1 && words[0] == "linger" {
		return linger()
	}
	if len(words) == 1 && strings.HasPrefix(words[0], "fork") {
		lock := os.NewFile(lockDescriptor, "lock")
		return exitOf(descend(lock, "linger", words[0] == "fork-session"))
	}
	if slices.Contains(words, childStubborn) {
		signal.Ignore(syscall.SIGTERM)
	}
	term, _ := strconv.ParseInt(os.Getenv(settings.TermVariable), 10, 64)
	news := call{What: "started", PID: os.Getpid(), Guardian: os.Getppid(), Node: os.Getenv(settings.NodeNameVariable), Term: term}
	lock, err := os.OpenFile(os.Getenv(lockVariable), os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil && !slices.Contains(words, childUnguarded) {
		var locked bool
		if locked, err = tryLock(lock); err == nil && !locked {
			news.What = "overlap"
		}
	}
	for _, word := range words {
		switch word {
		case childGeneration:
			err = errors.Join(err, descend(lock, "linger", false))
		case childDaemon:
			err = errors.Join(err, descend(lock, "fork", false))
		case childSession:
			err = errors.Join(err, descend(lock, "fork-session", false))
		}
	}
	if err != nil {
		return exitOf(err)
	}
	ring(news)
	if !slices.Contains(words, childStubborn) {
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		<-terminated
		return 0
	}
	return linger()
}

// descend starts a descendant with the lock.
func descend(lock *os.File, word string, session bool) error {
	command := exec.Command(os.Args[0], asChild, word)
	command.ExtraFiles = []*os.File{lock}
	command.SysProcAttr = sessionAttributes(session)
	if err := command.Start(); err != nil {
		return err
	}
	if word == "linger" {
		return nil // no process waits for it
	}
	return command.Wait()
}

// linger ignores every signal that can be ignored, forever.
func linger() int {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	select {} // it holds the lock
}

func exitOf(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	return 0
}

// ring reports an event to the test.
func ring(news call) {
	conn, err := net.Dial("unixgram", os.Getenv(ringVariable))
	if err != nil {
		return // the test is over
	}
	defer conn.Close()
	text, _ := json.Marshal(news)
	_, _ = conn.Write(text)
}

// arena is where supervisors compete to run children. Only one tree of processes may
// run at a time.
type arena struct {
	t     *testing.T
	place place
	dsn   string
	env   []string
	calls chan call
	flags []string

	mu       sync.Mutex
	started  int
	overlaps []call
}

// newArena creates an arena for a database. flags are those of all supervisors.
func newArena(t *testing.T, place place, flags ...string) *arena {
	t.Helper()
	folder := t.TempDir()
	a := &arena{t: t, place: place, dsn: place.server.DSN(), calls: make(chan call, 1000), flags: flags}
	address := filepath.Join(folder, "ring")
	listener, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	a.env = []string{lockVariable + "=" + filepath.Join(folder, "lock"), ringVariable + "=" + address}
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.listen(listener)
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return a
}

func (a *arena) listen(listener *net.UnixConn) {
	for text := make([]byte, 1000); ; {
		n, err := listener.Read(text)
		if err != nil {
			return
		}
		var news call
		if json.Unmarshal(text[:n], &news) != nil {
			continue
		}
		a.mu.Lock()
		a.started++
		if news.What == "overlap" {
			a.overlaps = append(a.overlaps, news)
		}
		a.mu.Unlock()
		a.calls <- news
	}
}

// enter launches a supervisor of a child of some kind.
func (a *arena) enter(name string, child ...string) *process {
	a.t.Helper()
	args := append([]string{"run", "--role", "billing", "--name", name, "--dsn", a.dsn, "--schema", a.place.schema}, a.flags...)
	return launchWith(a.t, a.env, append(append(args, "--", os.Args[0], asChild), child...)...)
}

// next waits for the next start of a child.
func (a *arena) next() call {
	a.t.Helper()
	return testkit.Receive(a.t, a.calls, patience, "no child starts")
}

// nextOf waits for the next start of a child for which the condition holds.
func (a *arena) nextOf(fits func(call) bool) call {
	a.t.Helper()
	for {
		if news := a.next(); fits(news) {
			return news
		}
	}
}

// none checks that no child starts for a while.
func (a *arena) none(while time.Duration) {
	a.t.Helper()
	select {
	case news := <-a.calls:
		a.t.Errorf("%+v, too early", news)
	case <-time.After(while):
	}
}

// verdict fails the test if two trees ran at the same time.
func (a *arena) verdict() {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, news := range a.overlaps {
		a.t.Errorf("a child of an earlier term lived when this one started: %+v", news)
	}
	a.t.Logf("%d children started", a.started)
}
