//go:build linux

package agent_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent"
	"github.com/exactly-one/tenure/agent/internal/wire"
	"github.com/exactly-one/tenure/internal/children"
)

// answers are what a call is answered with: as the first one of a connection, and as a
// later one, in a session.
type answers struct{ first, later string }

// calls are the answers for a process that may use the agent. The release is of a role
// that another node holds. A call that is not here fails the test: decide who may make
// it, and add it.
var calls = map[string]answers{
	wire.OpOpen:      {"opened", "unsupported"},
	wire.OpAcquire:   {"unsupported", "answered"},
	wire.OpHeartbeat: {"unsupported", "answered"},
	wire.OpRelease:   {"unsupported", "lock"},
	wire.OpRequests:  {"unsupported", "answered"},
	wire.OpClose:     {"unsupported", "answered"},
	wire.OpLeaders:   {"answered", "unsupported"},
	wire.OpRequest:   {"answered", "unsupported"},
}

// row is an answer: that of the table calls.
const row = "as its row says"

// callers are the answers for each kind of caller.
var callers = map[string]answers{
	"the agent's user": {row, row},
	"root":             {row, row},
	"another user":     {"no permission", "no permission"},
	"another user at a socket that is open to all":     {"closed", "closed"},
	"another user with connections that root has made": {row, row},
	"a node of another version":                        {"refused", "session_lost"},
	"a node with the id of another one":                {row, row},
	"the node whose id another one has":                {row, "session_lost superseded"},
	"a node that is silent for longer than its lease":  {row, "lost"},
	"a node of an agent that ends":                     {"no agent", "lost"},
}

// visit is one process that makes each call at an agent, each on another connection.
type visit struct {
	Path    string
	Version int           // of the protocol, in all calls but those that open a session
	Lease   time.Duration // of the sessions
	User    int           // 0 for that of this process
	Late    bool          // the process becomes the user when the connections are there

	between func(map[call]*line) // called when the connections are there; may be nil
}

// call is a call, and whether it is made in a session.
type call struct {
	op    string
	later bool
}

func (c call) String() string {
	if c.later {
		return c.op + " in a session"
	}
	return c.op
}

// line is a connection, or the answer that there was instead of one.
type line struct {
	conn   *net.UnixConn
	node   uuid.UUID
	answer string
}

// run returns the answers to all calls.
func (v visit) run() (got map[string]string, err error) {
	if !v.Late {
		err = become(v.User)
	}
	lines := map[call]*line{}
	for op := range calls {
		lines[call{op, false}], lines[call{op, true}] = dial(v.Path), openSession(v.Path, uuid.New(), v.Lease)
	}
	if v.Late {
		err = become(v.User)
	}
	if v.between != nil {
		v.between(lines)
	}
	got = map[string]string{}
	for c, l := range lines {
		if l.conn != nil {
			l.answer = l.call(v.message(c.op))
			_ = l.conn.Close() // the call was answered
		}
		got[c.String()] = l.answer
	}
	return got, err
}

// become changes the user of all threads of this process.
func become(user int) error {
	if user == 0 {
		return nil
	}
	return errors.Join(syscall.Setgroups(nil), syscall.Setresgid(user, user, user), syscall.Setresuid(user, user, user))
}

// dial connects to an agent.
func dial(path string) *line {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	switch {
	case errors.Is(err, fs.ErrPermission):
		return &line{answer: "no permission"}
	case errors.Is(err, fs.ErrNotExist):
		return &line{answer: "no agent"}
	case err != nil:
		return &line{answer: err.Error()}
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute)) // reading reports an error
	return &line{conn: conn}
}

// openSession connects to an agent and opens a session of a node.
func openSession(path string, node uuid.UUID, lease time.Duration) *line {
	l := dial(path)
	if l.conn == nil {
		return l
	}
	open := wire.Open{Node: tenure.NodeInfo{ID: node, Name: "visitor"}, Lease: lease}
	l.node = node
	if answer := l.call(wire.Call{Version: wire.Version, Op: wire.OpOpen, Open: &open}); answer != "opened" {
		_ = l.conn.Close() // it has no session
		return &line{answer: answer}
	}
	return l
}

func (v visit) message(op string) wire.Call {
	message := wire.Call{Version: v.Version, Op: op}
	switch op {
	case wire.OpOpen:
		message.Open = &wire.Open{Node: tenure.NodeInfo{ID: uuid.New(), Name: "visitor"}, Lease: v.Lease}
	case wire.OpAcquire:
		message.Acquire = []wire.Acquire{{Role: wire.Role{Name: uuid.NewString()}}}
	case wire.OpRelease:
		message.Releases = []wire.Release{{Role: wire.Role{Name: role}}}
	case wire.OpLeaders:
		message.Roles = []string{role}
	case wire.OpRequest:
		message.Request = &tenure.Request{Role: role}
	}
	return message
}

// call returns what a call is answered with.
func (l *line) call(message wire.Call) string {
	if wire.Write(l.conn, message) != nil { // the agent has closed its end
		return "closed"
	}
	for {
		var answer wire.Answer
		switch err := wire.Read(l.conn, &answer); {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return "nothing"
		case err != nil:
			return "closed"
		case answer.Event != "":
		case answer.Opened != nil:
			return "opened"
		case answer.Err != nil:
			return strings.Join(answer.Err.Matches, " ")
		default:
			return "answered"
		}
	}
}

// await waits for at most a minute until the agent has sent an event.
func (l *line) await(event string) error {
	_ = l.conn.SetReadDeadline(time.Now().Add(time.Minute)) // reading reports an error
	for {
		var answer wire.Answer
		if err := wire.Read(l.conn, &answer); err != nil {
			return fmt.Errorf("waiting for the event %q: %w", event, err)
		}
		if answer.Event == event {
			return nil
		}
	}
}

// asChild runs a visit in another process.
func (v visit) asChild(t *testing.T) map[string]string {
	t.Helper()
	text, err := json.Marshal(order{Visit: &v})
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env, child.Stderr = append(os.Environ(), childVariable+"="+string(text)), os.Stderr
	output, err := child.Output()
	got := map[string]string{}
	if err := errors.Join(err, json.Unmarshal(output, &got)); err != nil {
		t.Fatal(err)
	}
	return got
}

// named returns the values of the protocol's constants whose names begin with prefix.
func named(t *testing.T, prefix string) (values []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("internal", "wire", "message.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if constant, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(constant.Names[0].Name, prefix) && len(constant.Values) == 1 {
			value, err := strconv.Unquote(constant.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
		return true
	})
	slices.Sort(values)
	return values
}

// The users of the test. No other process of the machine runs as them.
const agentUser, otherUser = 61001, 61002

// door is an agent that runs as agentUser, with the callers that were not tried.
type door struct {
	*testing.T

	path    string
	agent   *children.Child
	second  []*line // open sessions beside those of the present visit
	untried map[string]answers
}

func newDoor(t *testing.T) *door {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test becomes other users: run it as root")
	}
	s := newSite(t, 10*time.Second)
	path := socketPath(t)
	directory := filepath.Dir(path)
	if err := errors.Join(os.Chown(directory, agentUser, agentUser), os.Chmod(directory, 0o755)); err != nil {
		t.Fatal(err)
	}
	process := s.start(order{Name: "agent", DSN: s.server.DSN(), Path: path, User: agentUser})
	children.Await(s, process, "ready", time.Time{})
	return &door{T: t, path: path, agent: process, untried: maps.Clone(callers)}
}

// try compares the answers to a visit with the rows.
func (d *door) try(who string, v visit) {
	d.Helper()
	v.Path, v.Version, v.Lease = d.path, cmp.Or(v.Version, wire.Version), cmp.Or(v.Lease, time.Minute)
	var got map[string]string
	if v.User != 0 {
		got = v.asChild(d.T)
	} else {
		got, _ = v.run() // it becomes no other user
	}
	for _, l := range d.second {
		_ = l.conn.Close() // the visit is over
	}
	d.second = nil
	for op, its := range calls {
		want := callers[who]
		if want.first == row {
			want.first = its.first
		}
		if want.later == row {
			want.later = its.later
		}
		for c, want := range map[call]string{{op, false}: want.first, {op, true}: want.later} {
			if got := got[c.String()]; got != want {
				d.Errorf("%s: %s is answered with %q; the row says %q", who, c, got, want)
			}
		}
	}
	delete(d.untried, who)
}

// lose waits until the agent has ended all sessions of a visit.
func (d *door) lose(lines map[call]*line) {
	d.Helper()
	for c, l := range lines {
		if !c.later {
			continue
		}
		if err := l.await(wire.EventLost); err != nil {
			d.Errorf("%s: %v", c, err)
			continue
		}
		// The agent closes its end after it has written the event.
		if got := l.call(wire.Call{Version: wire.Version, Op: c.op}); got != "closed" && got != "session_lost" {
			d.Errorf("%s: after the session was lost, the call is answered with %q, want that it is refused", c, got)
		}
		_ = l.conn.Close() // the agent has ended the session
		*l = line{answer: "lost"}
	}
}

// supersede opens a second session of each node. The calls are made in it, or in the
// first one.
func (d *door) supersede(lines map[call]*line, inSecond bool) {
	d.Helper()
	for c, l := range lines {
		if !c.later {
			continue
		}
		second := d.session(l.node)
		if inSecond {
			l.conn, second.conn = second.conn, l.conn
		}
		d.second = append(d.second, second)
	}
}

// session opens a session of a node.
func (d *door) session(node uuid.UUID) *line {
	d.Helper()
	l := openSession(d.path, node, time.Hour)
	if l.conn == nil {
		d.Fatalf("opening a session: %s", l.answer)
	}
	return l
}

// A call or an event that is in no row is one that any process may use.
func TestEveryMessageHasARow(t *testing.T) {
	t.Parallel()
	if got, want := named(t, "Op"), slices.Sorted(maps.Keys(calls)); !slices.Equal(got, want) {
		t.Errorf("the protocol has the calls %v; the rows are of %v: decide who may make each one", got, want)
	}
	if got, want := named(t, "Event"), []string{wire.EventLost, wire.EventWake}; !slices.Equal(got, want) {
		t.Errorf("the protocol has the events %v; the test sees %v", got, want)
	}
}

// Every call is answered for each kind of caller as its row says, also in a session
// that the caller must not use any longer.
func TestEveryCallAsEverybody(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	leader := d.session(uuid.New())
	if got := leader.call(wire.Call{Version: wire.Version, Op: wire.OpAcquire, Acquire: []wire.Acquire{{Role: wire.Role{Name: role}}}}); got != "answered" {
		t.Fatalf("acquiring the role: %q", got)
	}
	d.try("the agent's user", visit{User: agentUser})
	d.try("root", visit{})
	d.try("another user", visit{User: otherUser})
	if err := os.Chmod(d.path, 0o666); err != nil {
		t.Fatal(err)
	}
	d.try("another user at a socket that is open to all", visit{User: otherUser})
	d.try("another user with connections that root has made", visit{User: otherUser, Late: true})
	d.try("a node of another version", visit{Version: wire.Version + 1})
	d.try("a node with the id of another one", visit{between: func(lines map[call]*line) { d.supersede(lines, true) }})
	d.try("the node whose id another one has", visit{between: func(lines map[call]*line) { d.supersede(lines, false) }})
	d.try("a node that is silent for longer than its lease", visit{Lease: time.Second, between: func(lines map[call]*line) { d.lose(lines) }})
	if err := leader.await(wire.EventWake); err != nil {
		t.Errorf("the leader, to which the callers sent requests: %v", err)
	}
	other := d.session(uuid.New())
	if err := wire.Write(other.conn, wire.Call{Version: wire.Version, Op: wire.OpAcquire, Acquire: []wire.Acquire{{Role: wire.Role{Name: role}}}}); err != nil {
		t.Fatal(err)
	}
	var answer wire.Answer
	if err := wire.Read(other.conn, &answer); err != nil || len(answer.Results) != 1 || answer.Results[0].Outcome != tenure.OutcomeHeld {
		t.Errorf("invariant 1: the role of a leader that other nodes have tried to release: %v, %+v; want OutcomeHeld", err, answer)
	}
	d.try("a node of an agent that ends", visit{between: func(lines map[call]*line) {
		if err := d.agent.EndInput(); err != nil {
			t.Fatal(err)
		}
		lines[call{"leader", true}], lines[call{"other", true}] = leader, other
		d.lose(lines)
		delete(lines, call{"leader", true})
		delete(lines, call{"other", true})
		<-d.agent.Ended()
		for op := range calls {
			_ = lines[call{op, false}].conn.Close() // the agent has ended
			*lines[call{op, false}] = *dial(d.path)
		}
	}})
	for who := range d.untried {
		t.Errorf("the row %q was not tried", who)
	}
}

// A node trusts the agent with its terms, so it uses none of another user.
func TestNodeRefusesAgentOfAnotherUser(t *testing.T) {
	t.Parallel()
	backend := agent.New(newDoor(t).path)
	_, errOpen := backend.Open(t.Context(), options("root's"))
	_, errLeaders := backend.Leaders(t.Context(), role)
	errRequest := backend.Request(t.Context(), tenure.Request{Role: role})
	for call, err := range map[string]error{wire.OpOpen: errOpen, wire.OpLeaders: errLeaders, wire.OpRequest: errRequest} {
		if !errors.Is(err, tenure.ErrRefused) {
			t.Errorf("%s at an agent of another user: got error %v, want ErrRefused", call, err)
		}
	}
}
