//go:build linux

package agent_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent/internal/wire"
	"github.com/exactly-one/tenure/agent/server"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/tenuretest"
)

// A connection that has ended makes way for another one.
func TestConnectionsThatEndedDoNotCount(t *testing.T) {
	t.Parallel()
	path := startAgent(t, server.Config{Backend: tenuretest.NewDatabase(), MaxConnections: 1})
	for i := range 3 {
		if !testkit.Within(soon, func() bool { return opens(t, path) }) {
			t.Fatalf("invariant 7: node %d is refused, although the connections before it have ended", i+1)
		}
	}
}

// opens reports whether a node that connects gets a session, which it then closes.
func opens(t *testing.T, path string) bool {
	t.Helper()
	node := dialRaw(t, path)
	defer node.close()
	call := wire.Call{Version: wire.Version, Op: wire.OpOpen, Open: &wire.Open{Node: options("a").Node, Lease: time.Minute}}
	var answer wire.Answer
	err := errors.Join(wire.Write(node.conn, call), wire.Read(node.conn, &answer))
	return err == nil && answer.Opened != nil
}

func TestSocketIsForItsUserOnly(t *testing.T) {
	t.Parallel()
	info, err := os.Lstat(startAgent(t, server.Config{Backend: tenuretest.NewDatabase()}))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("the socket has the mode %v, want 0600", info.Mode())
	}
}

// Two agents at one path would make two nodes of one host lead.
func TestSecondAgentAtOnePathDoesNotStart(t *testing.T) {
	t.Parallel()
	path := startAgent(t, server.Config{Backend: tenuretest.NewDatabase()})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := server.Run(ctx, server.Config{Backend: tenuretest.NewDatabase(), Path: path, Logger: slog.New(slog.DiscardHandler)}, cancel)
	if !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Errorf("a second agent at the path of the first: got error %v, want ErrInvalidConfig", err)
	}
	join(t, path, time.Minute).acquire("r")
}

// logText is a log that a test reads while it is written.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// Without the lock file, another agent may serve the path: an agent that has lost it
// leaves the path alone.
func TestAgentWithoutItsLockFileLeavesThePathAlone(t *testing.T) {
	t.Parallel()
	log := &logText{}
	path := startAgent(t, server.Config{Backend: tenuretest.NewDatabase(), Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err := errors.Join(os.Remove(path+".lock"), os.Remove(path)); err != nil {
		t.Fatal(err)
	}
	testkit.AwaitWithin(t, soon, "the agent reports that its socket and lock file were removed", func() bool {
		if _, err := os.Lstat(path); err == nil {
			t.Fatal("invariant 1: an agent creates its socket again where another agent may serve")
		}
		return log.has("lock file were removed")
	})
}
