package tenure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/endreason"
	"github.com/exactly-one/tenure/internal/fsm"
	"github.com/exactly-one/tenure/internal/logqueue"
	"github.com/exactly-one/tenure/internal/openlimit"
	"github.com/exactly-one/tenure/internal/steps"
	"github.com/exactly-one/tenure/internal/wakeup"
	"github.com/exactly-one/tenure/retry"
)

// Node is one running process that takes part in elections. It has one session with the
// backend and any number of elections on the session. Its id is new with every Open. It is
// safe for concurrent use.
type Node struct {
	id       uuid.UUID
	host     string
	cfg      Config
	backend  Backend
	clock    clocks.Clock
	log      *slog.Logger    // never blocks
	logQueue *logqueue.Queue // writes the records of log
	group    sync.WaitGroup  // all goroutines of the node, except that of logQueue
	sampler  loadSampler
	steps    steps.Recorder // nil except in tests

	ctx         context.Context // ends when the node begins to close
	cancel      context.CancelFunc
	abandonWork chan struct{} // closed when the node must not wait for work

	mu nodeMutex

	// Guarded by mu.
	elections       map[string]*Election
	followers       map[*Election]struct{} // started elections
	groups          map[string]*group      // of elections under one limit
	session         *session               // the current session, or nil
	outage          bool                   // the elections have been notified of failing openings
	lastIncarnation int64                  // of the last opened session
	lastSessionEnd  clocks.Instant         // when the last session's connection ended, if known
	fellSilent      bool                   // the last session ended because trust did
	retryNow        chan struct{}          // wakes reconnect after the retry strategy gave up
	closing         bool
	takesOver       bool // takeOverRoles has been started
	subscribers     map[chan struct{}]struct{}

	description        Description
	undrains           int    // how often the node stopped draining
	drainsOn           bool   // a drain continues after its call: a heartbeat reports its end
	descriptionVersion uint64 // the number of the description
	onDrain            func(context.Context, Request) error
	offerDeciders      map[*func(role string) bool]struct{}
	nodeRequest        *nodeRequest // the latest request for the node
	ownRequest         *Request     // the latest one if it arrived before a function of OnDrain
	counters           counters

	callbackDelays callbackDelays
}

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

// ID returns the node's id.
func (n *Node) ID() uuid.UUID { return n.id }

// Name returns the node's name.
func (n *Node) Name() string { return n.cfg.Name }

// Timing returns the node's durations, with the defaults filled in.
func (n *Node) Timing() Timing { return n.cfg.timing() }

// Clock returns the node's clock.
func (n *Node) Clock() clocks.Clock { return n.cfg.Clock }

// Logger returns the node's logger. It never blocks: a goroutine of the node
// passes the records, in order, to the handler of [Config].Logger. Values in a
// record must not change afterwards. If the handler is slow, a bounded number
// of records waits; the node logs how many it dropped. Close waits up to 2 s
// for the last records.
func (n *Node) Logger() *slog.Logger { return n.log }

// Backend returns the backend given to Open.
func (n *Node) Backend() Backend { return n.backend }

// Election returns a new election for a role, with default settings. The election is not
// started. An error matches ErrInvalidRole, or ErrDuplicateRole if the node already has an
// election for the role.
func (n *Node) Election(role Role) (*Election, error) {
	return n.ElectionWith(role, ElectionConfig{})
}

// ElectionWith is Election with settings.
func (n *Node) ElectionWith(role Role, cfg ElectionConfig) (*Election, error) {
	if err := role.Validate(); err != nil {
		return nil, err
	}
	if cfg.ReconnectGrace < 0 {
		return nil, fmt.Errorf("%w: the reconnect grace is %v; it must be at least 0", ErrInvalidConfig, cfg.ReconnectGrace)
	}
	cfg.Requires, cfg.Prefers = maps.Clone(cfg.Requires), maps.Clone(cfg.Prefers)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closing {
		return nil, ErrClosed
	}
	if n.elections[role.Name()] != nil {
		return nil, fmt.Errorf("%w: %s", ErrDuplicateRole, role)
	}
	e := &Election{node: n, role: role, cfg: cfg.shared()}
	if err := n.prepareTakeOverLocked(cfg); err != nil {
		return nil, err
	}
	if err := n.joinGroupLocked(e); err != nil {
		return nil, err
	}
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

// Connected reports whether the node has a trusted session. A node without a connection
// stays connected, and can lead, until its trust window ends.
func (n *Node) Connected() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.session != nil && n.session.trust.valid()
}

// Close shuts down all elections as [Election.Shutdown] does, leaves the cluster and
// closes the session. It is idempotent. It waits for running callbacks, so a callback must
// not call it. If ctx ends first, Close aborts the session: this releases all roles. The
// error then matches ErrShutdown, and ErrWorkRunning too if work has not returned.
func (n *Node) Close(ctx context.Context) error {
	defer n.logQueue.Flush(ctx, n.clock)
	var failed error
	runs := n.beginClose()
	defer n.clock.AfterFunc(n.cfg.StopTimeout, func() { n.logUnresigned(runs) })()
	for e, run := range runs {
		if failed == nil {
			failed = e.awaitFinished(ctx, run)
		}
	}
	s := n.beginLeave()
	if failed != nil {
		n.forceClose(s)
	}

	finished := make(chan struct{})
	go func() { // exits when all goroutines of the node have exited
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

// beginClose stops all elections and returns the number of each one's run.
func (n *Node) beginClose() map[*Election]uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closing = true // no election is added or started after this
	n.cancel()
	runs := make(map[*Election]uint64, len(n.elections))
	for _, e := range n.elections {
		e.requestStopLocked(endreason.Shutdown, ErrStopping)
		runs[e] = e.runNumber
	}
	return runs
}

// logUnresigned names the terms without a call of Resign by the caller of Campaign.
// Without the call, Close waits for ever, or as long as its context lasts.
func (n *Node) logUnresigned(runs map[*Election]uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for e := range runs {
		if e.term == nil {
			continue
		}
		if number := e.term.unresigned(); number > 0 {
			n.log.Warn("the node cannot close: Resign was not called for a term that has ended", "role", e.role.Name(), "term", number)
		}
	}
}

// beginLeave asks the session, if there is one, to leave once it has no term.
func (n *Node) beginLeave() *session {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.session != nil {
		n.session.leaving = true
		n.session.wakeLocked()
	}
	return n.session
}

// forceClose ends everything that Close could not end in time.
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

// retryStrategy governs opening sessions.
func (n *Node) retryStrategy() retry.Strategy {
	if n.cfg.Retry != nil {
		return n.cfg.Retry
	}
	return defaultReconnect
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

// requestSession wakes reconnect after the retry strategy gave up.
func (n *Node) requestSession() {
	wakeup.Send(n.retryNow)
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

// pause waits until d has passed or ctx ends.
func (n *Node) pause(ctx context.Context, d time.Duration) {
	pause, cancel := context.WithCancel(ctx)
	defer cancel()
	defer n.clock.AfterFunc(d, cancel)()
	<-pause.Done()
}

// wakeSessionLocked makes the session, if there is one, choose its next job
// again.
func (n *Node) wakeSessionLocked() {
	if n.session != nil {
		n.session.wakeLocked()
	}
}

// unlockPendingLocked releases the lock of an election stopped while it held the lock
// without a term. During an attempt, applyResultLocked does so.
func (n *Node) unlockPendingLocked(e *Election) {
	if e.attempt.pending && !e.attempt.inFlight && n.session != nil {
		e.attempt.pending = false
		n.session.queueUnlockLocked(e, 0)
	}
}

// refresh sends a heartbeat and waits for its result.
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
