package tenure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/fsm"
)

// openTimeout bounds one attempt to open a session, but for what the backend says
// takes longer; see SessionOptions.Extend.
const openTimeout = 10 * time.Second

var errOpenTimeout = fmt.Errorf("opening took too long: %w", context.DeadlineExceeded)

// Node is one running process that takes part: one session with the backend,
// and any number of elections on it. Its id is new with every Open. It is safe
// for concurrent use.
type Node struct {
	id      uuid.UUID
	host    string
	cfg     Config
	backend Backend
	clock   Clock
	log     *slog.Logger   // never blocks
	logQueue *logQueue      // behind log
	group   sync.WaitGroup // every goroutine of the node, but the writer of records
	sampler loadSampler

	ctx         context.Context // ends when the node begins to close
	cancel      context.CancelFunc
	abandonWork chan struct{} // closed: do not wait for work any longer

	mu sync.Mutex

	// Guarded by mu.
	elections      map[string]*Election
	followers      map[*Election]struct{} // elections that take part
	session        *session               // the present one, or nil
	outage         bool                   // the elections have been told that opening sessions fails
	lastSessionEnd Instant                // when the connection of the last one ended, if that is known
	retryNow       chan struct{}          // wakes a node whose retry strategy gave up
	closing        bool
	subscribers      map[chan struct{}]struct{}

	description        Description
	descriptionVersion uint64 // counts the descriptions
	onDrain            func(context.Context, Request) error
	nodeRequest        *nodeRequest // the last request for the node
	counters              counters
}

// Open opens a node. It returns when the node's first session stands, trying as
// long as the retry strategy and the context allow, and at once with an error
// that matches ErrRefused if the backend must not be used as it is, or
// ErrInvalidConfig. Canceling the context afterwards has no effect.
func Open(ctx context.Context, backend Backend, cfg Config) (*Node, error) {
	if d, ok := backend.(LeaseDefaulter); ok {
		cfg.Lease = or(cfg.Lease, d.DefaultLease())
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	n := &Node{
		id: uuid.New(), cfg: cfg, backend: backend, clock: cfg.Clock,
		elections: map[string]*Election{}, followers: map[*Election]struct{}{}, subscribers: map[chan struct{}]struct{}{},
		retryNow: make(chan struct{}, 1), abandonWork: make(chan struct{}),
		description: cfg.Description.clone(), descriptionVersion: 1, counters: newCounters(),
	}
	n.host, _ = os.Hostname()
	n.log, n.logQueue = newLogQueue(cfg.Logger.With("node", cfg.Name))
	n.ctx, n.cancel = context.WithCancel(context.Background())
	first, err := n.connect(ctx, true)
	if err != nil {
		n.cancel()
		n.logQueue.flush(ctx, n.clock)
		return nil, fmt.Errorf("opening a session: %w", err)
	}
	n.group.Add(1)
	go n.run(first) // ends when the node closes; Close waits for it
	return n, nil
}

// ID returns the node's id.
func (n *Node) ID() uuid.UUID { return n.id }

// Name returns the node's name.
func (n *Node) Name() string { return n.cfg.Name }

// Timing returns the node's durations, with the defaults filled in.
func (n *Node) Timing() Timing { return n.cfg.timing() }

// Clock returns the clock that the node goes by.
func (n *Node) Clock() Clock { return n.cfg.Clock }

// Logger returns the node's logger. It never blocks: a goroutine of the node
// hands the records, in order, to the handler of [Config].Logger. What a record
// refers to must not change afterwards. Records that wait while a handler is
// slow are bounded in number; how many were lost is logged. Close waits up to
// 2 s for the last ones.
func (n *Node) Logger() *slog.Logger { return n.log }

// Backend returns the backend that the node was opened with.
func (n *Node) Backend() Backend { return n.backend }

// Election returns a new election for a role, with default settings. It is not
// started. It returns an error that matches ErrInvalidRole or ErrDuplicateRole:
// a node has at most one election for a role, for as long as it lives.
func (n *Node) Election(role Role) (*Election, error) {
	return n.ElectionWith(role, ElectionConfig{})
}

// ElectionWith is Election with settings.
func (n *Node) ElectionWith(role Role, cfg ElectionConfig) (*Election, error) {
	if err := role.Validate(); err != nil {
		return nil, err
	}
	if cfg.ReconnectGrace < 0 {
		return nil, fmt.Errorf("%w: the reconnect grace is %v; the least is 0", ErrInvalidConfig, cfg.ReconnectGrace)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closing {
		return nil, ErrClosed
	}
	if n.elections[role.Name()] != nil {
		return nil, fmt.Errorf("%w: %s", ErrDuplicateRole, role)
	}
	e := &Election{node: n, role: role, cfg: cfg}
	n.elections[role.Name()] = e
	return e, nil
}

// Elections returns the node's elections in no particular order.
func (n *Node) Elections() []*Election {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make([]*Election, 0, len(n.elections))
	for _, e := range n.elections {
		all = append(all, e)
	}
	return all
}

// Connected reports whether the node has a session that it may trust. A node
// can still lead for a while without being able to renew; then it is
// unconnected only when trust has ended.
func (n *Node) Connected() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.session != nil && n.session.trust.valid()
}

// Close shuts all elections down as by [Election.Shutdown], leaves the cluster
// and closes the session. It is idempotent. It waits for callbacks in progress,
// so it must not be called from one. If the context ends first, it cuts the
// session, which frees all roles, and returns an error that matches
// ErrShutdown, and ErrWorkRunning if work has not returned.
func (n *Node) Close(ctx context.Context) error {
	defer n.logQueue.flush(ctx, n.clock)
	var failed error
	for e, life := range n.beginClose() {
		if failed == nil {
			failed = e.awaitFinished(ctx, life)
		}
	}
	s := n.beginLeave()
	if failed != nil {
		n.forceClose(s)
	}

	finished := make(chan struct{})
	go func() { // ends with the node's goroutines, or with the callback that never returns
		defer close(finished)
		n.group.Wait()
	}()
	select {
	case <-finished:
		return failed
	case <-ctx.Done():
	}
	n.forceClose(s)
	if failed == nil {
		failed = fmt.Errorf("leaving: %w: %w", ErrShutdown, context.Cause(ctx))
	}
	return failed
}

// beginClose makes all elections of the node stop, for good, and returns the life
// that each is in.
func (n *Node) beginClose() map[*Election]uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closing = true // from now on no election is added or started
	n.cancel()
	lives := make(map[*Election]uint64, len(n.elections))
	for _, e := range n.elections {
		e.requestStopLocked(EndShutdown, ErrStopping)
		lives[e] = e.runNumber
	}
	return lives
}

// beginLeave asks the session, if there is one, to leave when it holds no term.
func (n *Node) beginLeave() *session {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.session != nil {
		n.session.leaving = true
		n.session.wakeLocked()
	}
	return n.session
}

// forceClose ends what Close could not end in time.
func (n *Node) forceClose(s *session) {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.abandonWork:
	default:
		close(n.abandonWork)
	}
	if s != nil {
		s.endLocked(ErrClosed)
	}
}

// run keeps the node in session until it closes.
func (n *Node) run(s *session) {
	defer n.group.Done()
	for {
		<-s.lost
		next, err := n.reconnect()
		if err != nil {
			return
		}
		s = next
	}
}

// reconnect opens sessions until one stands. When the retry strategy gives up,
// every election stops, and it waits until one starts again.
func (n *Node) reconnect() (*session, error) {
	for {
		if n.ctx.Err() != nil {
			return nil, ErrClosed
		}
		s, err := n.connect(n.ctx, false)
		if err == nil || n.ctx.Err() != nil {
			return s, err
		}
		n.log.Error("giving up: the retry strategy says stop", "error", err)
		n.mu.Lock()
		for e := range n.followers {
			e.err = err
			if e.State() == Reconnecting {
				e.stepLocked(fsm.ReacquireFailed, e.lostTerm, e.lostCause)
			}
			e.requestStopLocked(EndShutdown, ErrStopping)
		}
		n.mu.Unlock()
		select {
		case <-n.retryNow:
		case <-n.ctx.Done():
			return nil, ErrClosed
		}
	}
}

// requestSession wakes a node that gave up reconnecting.
func (n *Node) requestSession() {
	select {
	case n.retryNow <- struct{}{}:
	default:
	}
}

var defaultReconnect = ExponentialBackoff{Base: 100 * time.Millisecond, Max: 2 * time.Second, Jitter: 0.5}

// connect opens a session, trying again as the retry strategy says. The first
// of a node is not tried again after a refusal.
func (n *Node) connect(ctx context.Context, first bool) (*session, error) {
	var strategy RetryStrategy = defaultReconnect
	if n.cfg.Retry != nil {
		strategy = n.cfg.Retry
	}
	select {
	case <-n.retryNow:
	default:
	}
	begun := n.clock.Now()
	for number := 1; ; number++ {
		s, err := n.open(ctx)
		if err == nil {
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, errors.Join(err, context.Cause(ctx))
		}
		if first && errors.Is(err, ErrRefused) {
			return nil, err
		}
		n.reportOutage(number, err)
		elapsed := n.clock.Now().Mono - begun.Mono
		delay, again := n.nextDelay(strategy, RetryContext{Attempt: number, Elapsed: elapsed, LastError: err})
		if !again {
			return nil, err
		}
		n.pause(ctx, delay)
		if ctx.Err() != nil {
			return nil, errors.Join(err, context.Cause(ctx))
		}
	}
}

// reportOutage logs a failed attempt to open a session and tells the elections
// once per outage. An outage lasts until a session has been proved a second time:
// one that is opened and lost at once does not end it.
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

// open opens one session and proves it with a first heartbeat, from which trust
// counts.
func (n *Node) open(ctx context.Context) (*session, error) {
	s := newSession(n)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	bound := time.AfterFunc(openTimeout, func() { cancel(errOpenTimeout) })
	defer bound.Stop()
	n.mu.Lock()
	description, gone := n.description.clone(), n.lastSessionEnd
	s.descriptionVersion = n.descriptionVersion
	n.mu.Unlock()
	conn, err := n.backend.Open(ctx, SessionOptions{
		Node:               NodeInfo{ID: n.id, Name: n.cfg.Name, Host: n.host},
		Description:        description,
		UniqueName:         n.cfg.UniqueName,
		Timing:             n.cfg.timing(),
		Clock:              n.clock,
		Logger:             n.log,
		PreviousSessionEnd: gone,
		MaySend:            s.trust.maySend,
		Extend:             func(d time.Duration) { bound.Reset(max(d, openTimeout)) },
		NodesChanged: func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.notifySubscribersLocked()
		},
	})
	if err != nil {
		return nil, openError(ctx, err)
	}
	s.conn = conn
	s.registry, _ = conn.(RegistrySession)
	// Nothing is held yet, so here a deadline may close the connection.
	defer context.AfterFunc(ctx, conn.Abort)()
	sent, err := n.firstHeartbeat(ctx, conn)
	if err != nil {
		conn.Abort()
		return nil, openError(ctx, fmt.Errorf("first heartbeat: %w", err))
	}
	if !s.trust.begin(sent.Add(n.cfg.Lease - n.cfg.Margin)) {
		conn.Abort()
		return nil, fmt.Errorf("first heartbeat: %w", ErrTrustExpired)
	}
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

// openError says of an error of opening a session whether the time was up.
func openError(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errOpenTimeout) {
		return fmt.Errorf("%w: %w", errOpenTimeout, err)
	}
	return err
}

// firstHeartbeat proves a new session and returns when the acknowledged heartbeat
// was sent. One that fails although the session stands is sent again: a slow
// database need not see the node join anew.
func (n *Node) firstHeartbeat(ctx context.Context, conn Session) (sent Instant, err error) {
	for {
		n.measureLoad(ctx)
		sent = n.clock.Now()
		_, err = conn.Heartbeat(n.lastLoad())
		if err == nil || errors.Is(err, ErrSessionLost) || ctx.Err() != nil {
			return sent, err
		}
		n.log.Warn("heartbeat failed", "error", err)
		n.pause(ctx, n.cfg.RefreshInterval/10)
	}
}

// pause waits for d or for the end of the context.
func (n *Node) pause(ctx context.Context, d time.Duration) {
	pause, cancel := context.WithCancel(ctx)
	defer cancel()
	defer n.clock.AfterFunc(d, cancel)()
	<-pause.Done()
}

// wakeSessionLocked makes the session, if there is one, choose again what to do.
func (n *Node) wakeSessionLocked() {
	if n.session != nil {
		n.session.wakeLocked()
	}
}

// unlockPendingLocked unlocks the role of an election that stopped while its lock was held
// without a term. If an attempt is in flight, its result does that.
func (n *Node) unlockPendingLocked(e *Election) {
	if e.attempt.pending && !e.attempt.inFlight && n.session != nil {
		e.attempt.pending = false
		n.session.queueUnlockLocked(e, 0)
	}
}

// refresh sends a heartbeat and waits for its end.
func (n *Node) refresh(ctx context.Context) error {
	done := make(chan error, 1)
	n.mu.Lock()
	s := n.session
	if s == nil {
		n.mu.Unlock()
		return ErrSessionLost
	}
	s.heartbeatWaiters = append(s.heartbeatWaiters, done)
	s.wakeLocked()
	n.mu.Unlock()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
