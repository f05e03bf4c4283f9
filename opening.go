package tenure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/endreason"
	"github.com/exactly-one/tenure/internal/fsm"
	"github.com/exactly-one/tenure/internal/logqueue"
	"github.com/exactly-one/tenure/internal/openlimit"
	"github.com/exactly-one/tenure/internal/steps"
	"github.com/exactly-one/tenure/retry"
)

// Open opens a node and returns when its first session is open. It retries as the retry
// strategy says until ctx ends. If the backend must not be used, the error matches
// ErrRefused, and there is no retry. An invalid configuration matches ErrInvalidConfig.
// Once Open has returned, the end of ctx has no effect.
func Open(ctx context.Context, backend Backend, cfg Config) (*Node, error) {
	if d, ok := backend.(interface{ DefaultLease() time.Duration }); ok {
		cfg.Lease = cmp.Or(cfg.Lease, d.DefaultLease())
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	n := &Node{
		id: uuid.New(), cfg: cfg, backend: backend, clock: cfg.Clock, steps: steps.From(ctx),
		elections: map[string]*Election{}, followers: map[*Election]struct{}{}, groups: map[string]*group{}, subscribers: map[chan struct{}]struct{}{},
		retryNow: make(chan struct{}, 1), abandonWork: make(chan struct{}),
		description: cfg.Description.clone(), descriptionVersion: 1, counters: newCounters(),
	}
	n.host, _ = os.Hostname()
	n.log, n.logQueue = logqueue.New(cfg.Logger.With("node", cfg.Name))
	n.ctx, n.cancel = context.WithCancel(context.Background())
	first, err := n.connect(ctx, true)
	if err != nil {
		n.cancel()
		n.logQueue.Flush(ctx, n.clock)
		return nil, fmt.Errorf("open a session: %w", err)
	}
	n.group.Add(1)
	go n.run(first) // ends when the node closes; Close waits for it
	return n, nil
}

// run opens a new session whenever one is lost, until the node closes.
func (n *Node) run(s *session) {
	defer n.group.Done()
	for early := 0; ; {
		<-s.lost
		if early++; n.hasProven(s) {
			early = 0
		}
		if early > 1 {
			n.pauseBefore(early)
		}
		next, err := n.reconnect()
		if err != nil {
			return
		}
		s = next
	}
}

// earlyLoss is the age below which a lost session counts as lost right after its start.
const earlyLoss = time.Second

// hasProven reports whether a session acknowledged a second heartbeat, or lasted for a while.
func (n *Node) hasProven(s *session) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return s.proven || n.clock.Now().Mono-s.openedAt >= earlyLoss
}

// pauseBefore waits before the next session if several in a row were lost right after
// they had opened, as after failed attempts.
func (n *Node) pauseBefore(number int) {
	delay, again := n.nextDelay(n.retryStrategy(), retry.Failure{Attempt: number - 1, LastError: ErrSessionLost})
	if !again { // it opens sessions nevertheless: each attempt succeeds
		delay = n.cfg.CheckInterval
	}
	n.pause(n.ctx, delay)
}

// reconnect opens sessions until one succeeds. If the retry strategy gives up,
// it stops every election and waits until one starts again.
func (n *Node) reconnect() (*session, error) {
	for {
		if n.ctx.Err() != nil {
			return nil, ErrClosed
		}
		s, err := n.connect(n.ctx, false)
		if err == nil || n.ctx.Err() != nil {
			return s, err
		}
		n.log.Error("stopped reconnecting: the retry strategy gave up", "error", err)
		n.mu.Lock()
		for e := range n.followers {
			e.err = err
			if e.State() == Reconnecting {
				e.stepLocked(fsm.ReacquireFailed, e.lostTerm, e.lostCause)
			}
			e.requestStopLocked(endreason.Shutdown, ErrStopping)
		}
		n.mu.Unlock()
		select {
		case <-n.retryNow:
		case <-n.ctx.Done():
			return nil, ErrClosed
		}
	}
}

// retryStrategy governs opening sessions.
func (n *Node) retryStrategy() retry.Strategy {
	if n.cfg.Retry != nil {
		return n.cfg.Retry
	}
	return defaultReconnect
}

var defaultReconnect = retry.ExponentialBackoff{Base: 100 * time.Millisecond, Max: 2 * time.Second, Jitter: 0.5}

// connect opens a session and retries as the retry strategy says. It does not
// retry a node's first session after a refusal.
func (n *Node) connect(ctx context.Context, first bool) (*session, error) {
	strategy := n.retryStrategy()
	select {
	case <-n.retryNow:
	default:
	}
	start := n.clock.Now()
	series := openlimit.NewSeries(n.clock)
	for number := 1; ; number++ {
		attempt := series.Begin(openlimit.Session)
		s, err := n.open(ctx, attempt.Limit)
		if err == nil {
			return s, nil
		}
		attempt.Fail(err)
		if ctx.Err() != nil {
			return nil, errors.Join(err, context.Cause(ctx))
		}
		if first && errors.Is(err, ErrRefused) {
			return nil, err
		}
		n.reportOutage(number, err)
		elapsed := n.clock.Now().Mono - start.Mono
		delay, again := n.nextDelay(strategy, retry.Failure{Attempt: number, Elapsed: elapsed, LastError: err})
		if !again {
			return nil, err
		}
		n.pause(ctx, delay)
		if ctx.Err() != nil {
			return nil, errors.Join(err, context.Cause(ctx))
		}
	}
}

// reportOutage logs a failed attempt to open a session and notifies the elections once per
// outage. An outage lasts until the second acknowledged heartbeat of a session: a session
// lost right after its start does not end it.
func (n *Node) reportOutage(number int, err error) {
	n.log.Warn("opening a session failed", "attempt", number, "error", err)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counters.sessionFailures++
	if n.outage {
		return
	}
	n.outage = true
	for e := range n.followers {
		e.postLocked(Event{Kind: EventError, Err: err})
	}
}

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
