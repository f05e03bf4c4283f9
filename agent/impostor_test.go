//go:build linux

package agent_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent"
	"github.com/exactly-one/tenure/agent/internal/wire"
)

// otherAgent is an agent whose answers are those of a test. It serves one connection.
func otherAgent(t *testing.T, answers ...wire.Answer) (path string) {
	t.Helper()
	path = socketPath(t)
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // it may be closed
	go func() {                                // exits when the node has closed its connection or the test ends
		conn, err := listener.Accept()
		for err == nil {
			var call wire.Call
			if err = wire.Read(conn, &call); err == nil && len(answers) > 0 {
				err = wire.Write(conn, answers[0])
				answers = answers[1:]
			}
		}
	}()
	return path
}

// Trust is a moment of a clock that both sides share. In another time namespace, the
// clock is another one.
func TestAgentWithAnotherClockIsRefused(t *testing.T) {
	t.Parallel()
	for name, offset := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		path := otherAgent(t, wire.Answer{Opened: &wire.Opened{Incarnation: 1, Now: wire.Now().Add(offset)}})
		session, err := agent.New(path).Open(t.Context(), options("a"))
		if err == nil {
			session.Abort()
		}
		if !errors.Is(err, tenure.ErrRefused) {
			t.Errorf("invariant 1: an agent whose clock is %s: got error %v, want ErrRefused", name, err)
		}
	}
}
