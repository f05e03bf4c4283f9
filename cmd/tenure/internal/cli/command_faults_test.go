//go:build linux

package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/testkit"
)

// faultsVariable is how often each fault is repeated.
const faultsVariable = "TENURE_TEST_FAULTS"

// rounds is how often each fault strikes.
func rounds(t *testing.T) int {
	t.Helper()
	if text := os.Getenv(faultsVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("%s is %q", faultsVariable, text)
		}
		return n
	}
	if testing.Short() {
		return 1
	}
	return 4
}

// childKinds are the trees that the supervisors of an arena guard, in turn.
var childKinds = [][]string{
	{childStubborn}, {childGeneration}, {childDaemon, childStubborn}, {childSession}, {},
}

// contest is three supervisors in an arena, one of which leads.
type contest struct {
	*arena
	supervisors map[string]*process
	entered     int
	leader      call
}

func newContest(t *testing.T, place place, flags ...string) *contest {
	t.Helper()
	c := &contest{arena: newArena(t, place, flags...), supervisors: map[string]*process{}}
	return c
}

// begin lets three supervisors in and waits until one leads.
func (c *contest) begin() {
	c.t.Helper()
	for range 3 {
		c.join()
	}
	c.leader = c.next()
}

// join lets one more supervisor in.
func (c *contest) join() {
	name := "node-" + strconv.Itoa(c.entered)
	c.supervisors[name] = c.enter(name, childKinds[c.entered%len(childKinds)]...)
	c.entered++
}

// follow waits until a child runs that started after the fault.
func (c *contest) follow(fits func(call) bool) {
	c.t.Helper()
	before := c.leader
	c.leader = c.nextOf(fits)
	if c.leader.Term < before.Term {
		c.t.Errorf("term %d after term %d", c.leader.Term, before.Term)
	}
}

func anyCall(call) bool { return true }

// another is a condition: the child is of another supervisor than the current leader.
func (c *contest) another() func(call) bool {
	name := c.leader.Node
	return func(news call) bool { return news.Node != name }
}

// There are three supervisors, whose children defend themselves against being
// killed. Whatever happens to the leader, no process of an earlier term's child
// is alive when the next child starts, and a child does start.
func TestChildrenNeverOverlap(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	// If a connection is only silent or its owner dead, the next leader need not wait:
	// only the guardian prevents two children from overlapping.
	atOnce := []string{"--lease", "1s", "--grace", "100ms", "--settle", "0"}
	t.Run("supervisor killed", func(t *testing.T) {
		t.Parallel()
		c := newContest(t, newPlace(t), atOnce...)
		c.begin()
		for range rounds(t) {
			dying := c.leader.Node
			c.supervisors[dying].signal(syscall.SIGKILL)
			c.follow(c.another())
			delete(c.supervisors, dying)
			c.join()
		}
		c.verdict()
	})
	t.Run("supervisor stopped and continued", func(t *testing.T) {
		t.Parallel()
		c := newContest(t, newPlace(t), atOnce...)
		c.begin()
		for range rounds(t) {
			stopped := c.supervisors[c.leader.Node]
			stopped.signal(syscall.SIGSTOP)
			c.follow(c.another())
			stopped.signal(syscall.SIGCONT)
		}
		c.verdict()
	})
	t.Run("guardian killed", func(t *testing.T) {
		t.Parallel()
		c := newContest(t, newPlace(t), atOnce...)
		c.begin()
		for range rounds(t) {
			if err := syscall.Kill(c.leader.Guardian, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			c.follow(anyCall)
		}
		c.verdict()
	})
	t.Run("network cut", func(t *testing.T) {
		t.Parallel()
		place := newPlace(t)
		proxy, err := faultwire.Start(place.server.Host + ":" + strconv.Itoa(place.server.Port))
		if err != nil {
			t.Fatal(err)
		}
		c := newContest(t, place, "--lease", "1s", "--grace", "100ms")
		t.Cleanup(func() {
			if err := proxy.Close(); err != nil {
				t.Error(err)
			}
		})
		if c.dsn, err = proxy.DSN(c.dsn); err != nil {
			t.Fatal(err)
		}
		c.begin()
		for i := range rounds(t) {
			leader := c.leader.Node
			var struck []*faultwire.Conn
			for _, conn := range proxy.Connections() {
				if strings.Contains(conn.ApplicationName(), leader+" ") {
					struck = append(struck, conn)
				}
			}
			if len(struck) == 0 {
				t.Fatalf("no connection of %s", leader)
			}
			if i%2 == 0 { // silence
				for _, conn := range struck {
					conn.Stall()
				}
				c.follow(anyCall) // perhaps its own child, on a new connection
				for _, conn := range struck {
					conn.Resume()
				}
			} else { // resets
				for _, conn := range struck {
					conn.Cut()
				}
				c.follow(anyCall)
			}
		}
		c.verdict()
	})
	t.Run("server restarted", func(t *testing.T) {
		t.Parallel()
		server := pgtest.Start(t, pgtest.Options{})
		c := newContest(t, place{server, server.Schema(t)}, "--lease", "1s", "--grace", "100ms")
		c.begin()
		for i := range rounds(t) {
			server.Restart(t, []string{"fast", "immediate"}[i%2])
			c.follow(anyCall)
		}
		c.verdict()
	})
}

// While processes of a killed supervisor and its guardian are alive, no node
// leads: the guardian does nothing here but hold the connection.
func TestLockOutlivesSupervisor(t *testing.T) {
	t.Parallel()
	c := newContest(t, newPlace(t), "--lease", "20s", "--settle", "0", "--check-interval", "100ms")
	c.begin()
	let := holdStill(t, c.leader.Guardian)
	c.supervisors[c.leader.Node].signal(syscall.SIGKILL)
	c.none(time.Second)
	let()
	c.follow(c.another())
	c.verdict()
}

// The kernel resumes a stopped process group that becomes orphaned, so the
// guardian does its work.
func TestStoppedGuardianResumesWhenSupervisorIsKilled(t *testing.T) {
	t.Parallel()
	c := newContest(t, newPlace(t), "--lease", "20s", "--settle", "0")
	c.begin()
	if err := syscall.Kill(c.leader.Guardian, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	awaitStopped(t, c.leader.Guardian)
	c.supervisors[c.leader.Node].signal(syscall.SIGKILL)
	c.follow(c.another())
	c.verdict()
}

// awaitStopped waits until all threads of a process are stopped: a signal that stops
// a process takes effect with a delay.
func awaitStopped(t *testing.T, pid int) {
	t.Helper()
	testkit.Await(t, fmt.Sprintf("process %d stops", pid), func() bool {
		states, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/stat")
		if err != nil || len(states) == 0 {
			t.Fatalf("process %d has no threads: %v", pid, err)
		}
		return !slices.ContainsFunc(states, func(path string) bool {
			stat, err := os.ReadFile(path)
			return err == nil && !bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T "))
		})
	})
}

// holdStill stops all threads of a process, by tracing it, in a way that no
// signal but SIGKILL ends, until the function that it returns is called.
func holdStill(t *testing.T, pid int) (let func()) {
	t.Helper()
	held, release, done := make(chan error), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the tracer is a thread; it ends with the goroutine
		attached := map[int]bool{}
		for found := true; found; {
			found = false
			threads, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
			if err != nil {
				held <- err
				return
			}
			for _, thread := range threads {
				id, err := strconv.Atoi(thread.Name())
				if err != nil || attached[id] {
					continue
				}
				var status syscall.WaitStatus
				if err := syscall.PtraceAttach(id); err != nil {
					held <- err
					return
				}
				if _, err := syscall.Wait4(id, &status, syscall.WALL, nil); err != nil {
					held <- err
					return
				}
				attached[id], found = true, true
			}
		}
		held <- nil
		<-release
		for id := range attached {
			_ = syscall.PtraceDetach(id)
		}
	}()
	if err := <-held; err != nil {
		t.Fatalf("tracing the guardian: %v", err)
	}
	let = sync.OnceFunc(func() {
		close(release)
		<-done
	})
	t.Cleanup(let)
	return let
}
