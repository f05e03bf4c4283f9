package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent/internal/wire"
)

// Backend connects nodes to the agent of their host. It is safe for concurrent
// use and needs no closing.
type Backend struct {
	path  string
	grace time.Duration
}

var _ tenure.Backend = (*Backend)(nil)

// New returns a backend on the agent with this socket path. It does not connect yet.
func New(path string) *Backend { return &Backend{path: path} }

// WithGrace returns a backend for nodes whose work needs this long to end before trust
// does. The agent refuses them unless its lease − margin − refresh interval is at least
// grace + the refresh interval of the node: otherwise trust would never last long enough,
// however long the lease of the node is.
func (b *Backend) WithGrace(grace time.Duration) *Backend {
	return &Backend{path: b.path, grace: grace}
}

// Open implements [tenure.Backend]. It waits for the agent's own session until ctx ends.
// The error matches [tenure.ErrRefused] if the agent must not be used with these options.
func (b *Backend) Open(ctx context.Context, options tenure.SessionOptions) (tenure.Session, error) {
	if options.UniqueName {
		return nil, fmt.Errorf("%w: %w: an agent does not know the names of nodes on other hosts: unique names need a direct connection to the database",
			tenure.ErrRefused, tenure.ErrUnsupported)
	}
	conn, end, err := b.dial(ctx)
	if err != nil {
		return nil, err
	}
	s, err := open(conn, options, b.grace)
	if !end() && err == nil { // ctx has ended and closed the connection
		s.Abort()
		err = fmt.Errorf("%w: %w", tenure.ErrConnection, context.Cause(ctx))
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("open a session with the agent: %w", err)
	}
	return s, nil
}

// Leaders implements [tenure.Backend]. A leader on this host is shown with its own name
// and id. A leader behind another host's agent is shown as this agent.
func (b *Backend) Leaders(ctx context.Context, roles ...string) ([]tenure.Leader, error) {
	readAt := time.Now() // before the query, so that the lease can only seem shorter
	answer, err := b.query(ctx, wire.Call{Op: wire.OpLeaders, Roles: roles})
	if err != nil {
		return nil, fmt.Errorf("leaders: %w", err)
	}
	for i := range answer.Leaders {
		answer.Leaders[i].ReadAt = readAt
	}
	return answer.Leaders, nil
}

// LeadersHaveLabels returns false: a leader behind another host's agent has the labels of
// this agent.
func (b *Backend) LeadersHaveLabels() bool { return false }

// Request implements [tenure.Backend]. On another host with an agent, the target is the
// agent's node. A node of an agent cannot be drained, since it is not in the registry.
func (b *Backend) Request(ctx context.Context, request tenure.Request) error {
	if _, err := b.query(ctx, wire.Call{Op: wire.OpRequest, Request: &request}); err != nil {
		return fmt.Errorf("request: %w", err)
	}
	return nil
}

// dial connects to the agent. The connection is closed if ctx ends before end is
// called; end reports whether it was in time.
func (b *Backend) dial(ctx context.Context) (conn *net.UnixConn, end func() bool, err error) {
	if err := wire.Supported(); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", tenure.ErrRefused, err)
	}
	network, err := (&net.Dialer{}).DialContext(ctx, "unix", b.path)
	if errors.Is(err, syscall.EINVAL) {
		return nil, nil, fmt.Errorf("%w: %w: the path of the agent's socket is too long; use one of at most 107 bytes: %w",
			tenure.ErrRefused, tenure.ErrInvalidConfig, err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the agent: %w: %w", tenure.ErrConnection, err)
	}
	conn = network.(*net.UnixConn) // of the network "unix"
	if err := wire.CheckPeer(conn); err != nil {
		_ = conn.Close()
		return nil, nil, fmt.Errorf("%w: the agent at %s: %w", tenure.ErrRefused, b.path, err)
	}
	return conn, context.AfterFunc(ctx, func() { _ = conn.Close() }), nil
}

// query makes one call on a new connection.
func (b *Backend) query(ctx context.Context, call wire.Call) (answer wire.Answer, err error) {
	conn, end, err := b.dial(ctx)
	if err != nil {
		return answer, err
	}
	defer func() {
		end()
		_ = conn.Close() // the answer has arrived or never will
	}()
	call.Version = wire.Version
	if err = wire.Write(conn, call); err == nil {
		err = wire.Read(conn, &answer)
	}
	switch {
	case err != nil:
		return answer, fmt.Errorf("the agent did not answer: %w: %w", tenure.ErrConnection, errors.Join(err, context.Cause(ctx)))
	case answer.Err != nil:
		return answer, answer.Err.Decode()
	}
	return answer, nil
}
