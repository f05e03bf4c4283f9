//go:build linux

package agent_test

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent/internal/wire"
	"github.com/exactly-one/tenure/agent/server"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/tenuretest"
)

// unreachable is a database that does not answer.
type unreachable struct{ *tenuretest.Database }

func (unreachable) Open(ctx context.Context, _ tenure.SessionOptions) (tenure.Session, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (unreachable) Leaders(ctx context.Context, _ ...string) ([]tenure.Leader, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// An agent that is asked to end does not wait for the answers to calls whose
// connections it closes: no work depends on them.
func TestAgentEndsWhileCallsWait(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]wire.Call{
		"a node that connects": {Op: wire.OpOpen, Open: &wire.Open{Node: tenure.NodeInfo{ID: uuid.New(), Name: "early"}, Lease: time.Minute}},
		"a query":              {Op: wire.OpLeaders},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := socketPath(t)
			ctx, end := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { // exits when ctx ends; ended shows it
				ended <- server.Run(ctx, server.Config{Backend: unreachable{}, Path: path, Logger: slog.New(slog.DiscardHandler)}, nil)
			}()
			node := dialRaw(t, awaitSocket(t, path))
			call.Version = wire.Version
			if err := wire.Write(node.conn, call); err != nil {
				t.Fatal(err)
			}
			awaitRead(t, node.conn)
			end()
			const most = 3 * time.Second // nodes wait for a session for 5 s, and queries for 10 s
			awaitEnded(t, ended, most, "no node has a session, and the agent has not ended")
		})
	}
}

// An agent that is asked to end waits for a node that has closed its session until that
// node has closed its connection, and not until its own next heartbeat.
func TestAgentEndsWithTheConnectionOfItsLastNode(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	timing := tenure.Timing{Lease: 3 * time.Minute, RefreshInterval: time.Minute, Margin: time.Second, CheckInterval: time.Second}
	go func() { // exits when ctx ends; ended shows it
		ended <- server.Run(ctx, server.Config{
			Backend: tenuretest.NewDatabase(), Timing: timing, Path: path, Logger: slog.New(slog.DiscardHandler),
		}, nil)
	}()
	node := dialRaw(t, awaitSocket(t, path))
	node.open(time.Minute)
	if answer := node.call(wire.Call{Op: wire.OpClose}); answer.Err != nil {
		t.Fatal(answer.Err.Decode())
	}
	end()
	awaitLost(t, node.conn)
	if err := node.conn.Close(); err != nil {
		t.Fatal(err)
	}
	const most = 3 * time.Second // the next heartbeat is due after 30 s
	awaitEnded(t, ended, most, "after its last node closed its connection, the agent has not ended")
}

// awaitLost waits until the agent says that the session of the node is lost.
func awaitLost(t *testing.T, conn *net.UnixConn) {
	t.Helper()
	for {
		var answer wire.Answer
		if err := wire.Read(conn, &answer); err != nil {
			t.Fatal(err)
		}
		if answer.Event == wire.EventLost {
			return
		}
	}
}

// awaitSocket waits until an agent listens at the path.
func awaitSocket(t *testing.T, path string) string {
	t.Helper()
	testkit.AwaitNil(t, patience, func() error {
		conn, err := net.Dial("unix", path)
		if err == nil {
			_ = conn.Close() // it has said nothing
		}
		return err
	})
	return path
}

// awaitRead waits until the agent has read what was written to it.
func awaitRead(t *testing.T, conn *net.UnixConn) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	testkit.AwaitWithin(t, patience, "the agent has read", func() bool {
		var unread int
		var failure error
		if err := raw.Control(func(fd uintptr) { unread, failure = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) }); err != nil || failure != nil {
			t.Fatal(err, failure)
		}
		return unread == 0
	})
}
