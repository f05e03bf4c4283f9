package tenure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/openlimit"
	"github.com/exactly-one/tenure/internal/steps"
)

// open opens one session and proves it with a first heartbeat. The trust window begins
// when the heartbeat is sent. limit bounds the opening, unless the backend extends it with
// SessionOptions.Extend.
func (n *Node) open(ctx context.Context, limit time.Duration) (*session, error) {
	s := newSession(n)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timeout := time.AfterFunc(limit, func() { cancel(openlimit.ErrTimeout) })
	defer timeout.Stop()
	n.mu.Lock()
	description, lastEnd, last := n.description.clone(), n.lastSessionEnd, n.endedIncarnationLocked()
	fellSilent := n.fellSilent
	s.descriptionVersion = n.descriptionVersion
	reopened := n.lastIncarnation != 0
	n.mu.Unlock()
	n.step(steps.Step{Kind: steps.Opens, Lease: n.cfg.Lease, Margin: n.cfg.Margin})
	conn, err := n.backend.Open(ctx, SessionOptions{
		Node:                NodeInfo{ID: n.id, Name: n.cfg.Name, Host: n.host},
		Description:         description,
		UniqueName:          n.cfg.UniqueName,
		Timing:              n.cfg.timing(),
		Clock:               n.clock,
		Logger:              n.log,
		PreviousSessionEnd:  lastEnd,
		PreviousFellSilent:  fellSilent,
		PreviousIncarnation: last,
		Reopened:            reopened,
		MaySend:             s.trust.maySend,
		Extend:              func(d time.Duration) { timeout.Reset(max(d, limit)) },
		Campaigns:           n.campaigns,
		NodesChanged: func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.notifySubscribersLocked()
		},
	})
	if err != nil {
		return nil, openlimit.Explain(ctx, err)
	}
	n.mu.Lock()
	n.lastIncarnation = conn.Incarnation()
	n.mu.Unlock()
	s.conn = conn
	s.registry, _ = conn.(RegistrySession)
	// The session holds no lock yet, so here a deadline may close the connection.
	defer context.AfterFunc(ctx, conn.Abort)()
	sent, err := s.firstHeartbeat(ctx)
	if err != nil {
		conn.Abort()
		return nil, openlimit.Explain(ctx, fmt.Errorf("first heartbeat: %w", err))
	}
	if !s.trust.begin(limitTrust(conn, sent.Add(n.cfg.Lease-n.cfg.Margin))) {
		conn.Abort()
		return nil, fmt.Errorf("first heartbeat: %w", ErrTrustExpired)
	}
	s.getsAnswer()
	n.mu.Lock()
	closing := n.closing
	if !closing {
		s.startLocked(sent)
	}
	n.mu.Unlock()
	if closing {
		conn.Abort()
		return nil, ErrClosed
	}
	return s, nil
}

// firstHeartbeat proves a new session and returns when the acknowledged heartbeat was
// sent. It repeats a failed heartbeat if the session continues: on a slow database a
// repetition is cheaper than a new session.
func (s *session) firstHeartbeat(ctx context.Context) (sent clocks.Instant, err error) {
	n := s.node
	for {
		n.measureLoad(ctx)
		sent = n.clock.Now()
		s.sendsHeartbeat(sent)
		s.requestsPending, err = s.conn.Heartbeat(n.lastLoad())
		if err == nil || errors.Is(err, ErrSessionLost) || ctx.Err() != nil {
			return sent, err
		}
		n.log.Warn("heartbeat failed", "error", err)
		n.pause(ctx, n.cfg.RefreshInterval/10)
	}
}
