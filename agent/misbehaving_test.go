//go:build linux

package agent_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent"
	"github.com/exactly-one/tenure/agent/internal/wire"
	"github.com/exactly-one/tenure/agent/server"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/tenuretest"
)

func options(name string) tenure.SessionOptions {
	return tenure.SessionOptions{
		Node:    tenure.NodeInfo{ID: uuid.New(), Name: name},
		Timing:  tenure.Timing{Lease: time.Minute, RefreshInterval: time.Second, Margin: time.Second},
		Clock:   clocks.System(),
		MaySend: func() bool { return true },
	}
}

// rawNode is a node of an agent that speaks the protocol by hand.
type rawNode struct {
	*testing.T
	conn *net.UnixConn
}

func dialRaw(t *testing.T, path string) rawNode {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // the test may have closed it
	return rawNode{t, conn}
}

func (n rawNode) call(call wire.Call) (answer wire.Answer) {
	n.Helper()
	call.Version = wire.Version
	err := wire.Write(n.conn, call)
	for err == nil {
		answer = wire.Answer{}
		if err = wire.Read(n.conn, &answer); err == nil && answer.Event == "" {
			return answer
		}
	}
	n.Fatalf("%s: the node loses its session: %v", call.Op, err)
	return answer
}

func (n rawNode) open(lease time.Duration) {
	n.Helper()
	answer := n.call(wire.Call{Op: wire.OpOpen, Open: &wire.Open{Node: tenure.NodeInfo{ID: uuid.New(), Name: "raw"}, Lease: lease}})
	if answer.Opened == nil {
		n.Fatalf("opening a session: %+v", answer.Err)
	}
}

func (n rawNode) acquire(role string) {
	n.Helper()
	answer := n.call(wire.Call{Op: wire.OpAcquire, Acquire: []wire.Acquire{{Role: wire.Role{Name: role}}}})
	if len(answer.Results) != 1 || answer.Results[0].Outcome != tenure.OutcomeGranted {
		n.Fatalf("acquiring a vacant role: %+v", answer)
	}
}

// A node that breaks the protocol may still trust its term: the agent releases its
// role when the node has closed its connection, or when its lease has expired
// (Invariant 1).
func TestNodeThatBreaksTheProtocolKeepsItsRole(t *testing.T) {
	t.Parallel()
	path := startAgent(t, server.Config{Backend: tenuretest.NewDatabase()})
	for name, garbage := range map[string]string{"a long frame": "\xff\xff\xff\xff", "no JSON": "\x00\x00\x00\x02{]"} {
		t.Run(name, func(t *testing.T) {
			broken := dialRaw(t, path)
			broken.open(time.Minute)
			broken.acquire(name)
			other, err := agent.New(path).Open(t.Context(), options("other"))
			if err != nil {
				t.Fatal(err)
			}
			defer other.Abort()
			if _, err := broken.conn.Write([]byte(garbage)); err != nil {
				t.Fatal(err)
			}
			_ = wire.Read(broken.conn, new(wire.Answer)) // the agent closes its direction
			if got := tryOnce(t, other, name); got.Outcome != tenure.OutcomeHeld {
				t.Errorf("invariant 1: the role of a node that may trust its term: %+v, want OutcomeHeld", got)
			}
			if err := broken.conn.Close(); err != nil {
				t.Fatal(err)
			}
			awaitGranted(t, other, name)
		})
	}
}

// A node that releases a role twice in one call does not end the sessions of the
// other nodes of the host.
func TestNodeThatReleasesRoleTwiceIsRefused(t *testing.T) {
	t.Parallel()
	path := startAgent(t, server.Config{Backend: backend(t, pgtest.Shared(t).Database(t), "")})
	broken := dialRaw(t, path)
	broken.open(time.Minute)
	broken.acquire("twice")
	release := wire.Release{Role: wire.Role{Name: "twice"}}
	answer := broken.call(wire.Call{Op: wire.OpRelease, Releases: []wire.Release{release, release}})
	if err := answer.Err.Decode(); err == nil || errors.Is(err, tenure.ErrSessionLost) {
		t.Errorf("releasing a role twice in one call: %v, want an error of this call only", err)
	}
	if answer := broken.call(wire.Call{Op: wire.OpRelease, Releases: []wire.Release{release}}); answer.Err != nil {
		t.Errorf("releasing the role then: %v", answer.Err.Decode())
	}
}

// However long a node leaves a role to others, the agent's call to the database
// works for all nodes.
func TestNodeMayYieldForVeryLong(t *testing.T) {
	t.Parallel()
	path := startAgent(t, server.Config{Backend: backend(t, pgtest.Shared(t).Database(t), "")})
	node := dialRaw(t, path)
	node.open(time.Minute)
	answer := node.call(wire.Call{Op: wire.OpAcquire, Acquire: []wire.Acquire{{Role: wire.Role{Name: "long"}, YieldFor: math.MaxInt64, YieldTerm: 1}}})
	if len(answer.Results) != 1 || answer.Results[0].Outcome != tenure.OutcomeGranted {
		t.Errorf("a role whose last term is another one than that which is left to others: %+v, want it granted", answer)
	}
}

func TestSilentNodeLosesItsRoleAfterItsLease(t *testing.T) {
	t.Parallel()
	path := startAgent(t, server.Config{Backend: tenuretest.NewDatabase()})
	const lease = 2 * time.Second // a busy machine must not miss it before the role is acquired
	silent := dialRaw(t, path)
	silent.open(lease)
	other, err := agent.New(path).Open(t.Context(), options("other"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Abort()
	sent := time.Now()
	silent.acquire("r")
	awaitGranted(t, other, "r")
	if took := time.Since(sent); took < lease {
		t.Errorf("invariant 1: another node has the role %v after a call, within the lease of %v", took, lease)
	}
}

func tryOnce(t *testing.T, session tenure.Session, role string) tenure.AcquireResult {
	t.Helper()
	results, err := session.TryAcquire([]tenure.AcquireRequest{{Role: tenure.NamedRole(role)}})
	if err != nil {
		t.Fatal(err)
	}
	return results[0]
}

func awaitGranted(t *testing.T, session tenure.Session, role string) {
	t.Helper()
	if !grantedWithin(t, session, role, patience) {
		t.Fatal("the role is not granted")
	}
}

func TestAgentRefusesNodesThatDoNotFit(t *testing.T) {
	t.Parallel()
	path := startAgent(t, server.Config{Backend: tenuretest.NewDatabase(), Timing: tenure.Timing{Lease: 10 * time.Second, Settle: time.Second}})
	for name, change := range map[string]func(*tenure.SessionOptions){
		"rare heartbeats":      func(o *tenure.SessionOptions) { o.Timing.RefreshInterval = 6 * time.Second },
		"a long settle":        func(o *tenure.SessionOptions) { o.Timing.Settle = 2 * time.Second },
		"a long failover wait": func(o *tenure.SessionOptions) { o.Timing.FailoverWait = time.Minute },
		"a unique name":        func(o *tenure.SessionOptions) { o.UniqueName = true },
	} {
		o := options(name)
		change(&o)
		session, err := agent.New(path).Open(t.Context(), o)
		if err == nil {
			session.Abort()
		}
		if !errors.Is(err, tenure.ErrRefused) {
			t.Errorf("%s: got error %v, want ErrRefused", name, err)
		}
		if setting := name != "a unique name"; setting != errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%s: got error %v; it matches ErrInvalidConfig: %t", name, err, !setting)
		}
	}
	// Right before the node's heartbeats, trust lasts for at least 10s - 1s - 10s/3 - 1s.
	for grace, fits := range map[time.Duration]bool{4 * time.Second: true, 5 * time.Second: false} {
		session, err := agent.New(path).WithGrace(grace).Open(t.Context(), options("with work"))
		if err == nil {
			session.Abort()
		}
		if fits != (err == nil) || !fits && !errors.Is(err, tenure.ErrRefused) {
			t.Errorf("work that needs %v to end: got error %v", grace, err)
		}
	}
	answer := dialRaw(t, path).call(wire.Call{Op: wire.OpOpen}) // no options
	if err := answer.Err.Decode(); !errors.Is(err, tenure.ErrUnsupported) {
		t.Errorf("a call without options: got error %v, want ErrUnsupported", err)
	}
}

// No later attempt can succeed with such a path.
func TestPathThatIsTooLongIsRefused(t *testing.T) {
	t.Parallel()
	_, err := agent.New("/"+strings.Repeat("x", 200)).Open(t.Context(), options("lost"))
	if !errors.Is(err, tenure.ErrRefused) || !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Errorf("got error %v, want ErrRefused and ErrInvalidConfig", err)
	}
}

func TestAgentRefusesTimesThatOverflow(t *testing.T) {
	t.Parallel()
	cfg := server.Config{Backend: tenuretest.NewDatabase(), Path: socketPath(t), Timing: tenure.Timing{FailoverWait: math.MaxInt64}}
	if err := server.Run(t.Context(), cfg, nil); !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Errorf("got %v, want ErrInvalidConfig", err)
	}
}

func TestAgentRefusesDirectoryOfOthers(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	run := func() error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		return server.Run(ctx, server.Config{Backend: tenuretest.NewDatabase(), Path: path}, cancel)
	}
	if err := run(); err != nil {
		t.Fatalf("in a private directory: %v", err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket of an agent that has ended: %v, want none", err)
	}
	if err := os.WriteFile(path, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(); !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Errorf("a file at the path: got error %v, want ErrInvalidConfig", err)
	}
	if err := errors.Join(os.Remove(path), os.Chmod(path[:len(path)-len("/socket")], 0o777)); err != nil {
		t.Fatal(err)
	}
	if err := run(); !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Errorf("a directory that others can write to: got error %v, want ErrInvalidConfig", err)
	}
}

// Who can replace a directory above the socket can replace the socket.
func TestAgentRefusesDirectoriesOfOthersAboveTheSocket(t *testing.T) {
	t.Parallel()
	above := filepath.Dir(socketPath(t))
	below := filepath.Join(above, "a")
	link := filepath.Join(filepath.Dir(socketPath(t)), "link")
	if err := errors.Join(os.Mkdir(below, 0o700), os.Symlink(below, link)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		directory string // whose mode changes
		mode      fs.FileMode
		socket    string
		refused   bool
	}{
		{above, 0o755, below, false},
		{above, 0o777, below, true},
		{above, 0o777, link, true},
		{above, 0o775, below, true},
		{above, 0o777 | fs.ModeSticky, below, false}, // as /tmp
		{below, 0o777 | fs.ModeSticky, below, true},  // the socket's own directory
		{below, 0o700, link, false},
		{filepath.Dir(link), 0o777, link, true},
	} {
		if err := os.Chmod(test.directory, test.mode); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err := server.Run(ctx, server.Config{Backend: tenuretest.NewDatabase(), Path: filepath.Join(test.socket, "s")}, cancel)
		cancel()
		if test.refused != errors.Is(err, tenure.ErrInvalidConfig) || !test.refused && err != nil {
			t.Errorf("mode %v of %s, socket in %s: got error %v, want ErrInvalidConfig: %t", test.mode, test.directory, test.socket, err, test.refused)
		}
	}
}

// A node with a longer lease than the agent's trusts its terms no longer than the
// agent trusts its own (Invariant 1).
func TestTrustEndsWithThatOfTheAgent(t *testing.T) {
	t.Parallel()
	path := startAgent(t, server.Config{Backend: tenuretest.NewDatabase(), Timing: tenure.Timing{Lease: 10 * time.Second, Margin: time.Second}})
	node, err := tenure.Open(t.Context(), agent.New(path), tenure.Config{
		Lease: time.Minute, RefreshInterval: time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer postgrestest.Close(t, node)
	election, err := node.Election(tenure.NamedRole("r"))
	if err != nil {
		t.Fatal(err)
	}
	term, err := election.TryAcquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if left := term.Remaining(); left > 9*time.Second || left <= 0 {
		t.Errorf("invariant 1: the node trusts its term for %v, the agent for at most 9s", left)
	}
}
