package tenure

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/logqueue"
	"github.com/exactly-one/tenure/internal/steps"
	"github.com/exactly-one/tenure/internal/wakeup"
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
	group    wakeup.Group    // all goroutines of the node, except that of logQueue
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

// nodeRequest is the node's request in progress.
type nodeRequest struct {
	cancel context.CancelFunc
	done   chan struct{}
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

// requestSession wakes reconnect after the retry strategy gave up.
func (n *Node) requestSession() {
	wakeup.Send(n.retryNow)
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

// unlockPendingLocked releases the lock of an election stopped while it held the lock
// without a term. During an attempt, applyResultLocked does so.
func (n *Node) unlockPendingLocked(e *Election) {
	if e.attempt.pending && !e.attempt.inFlight && n.session != nil {
		e.attempt.pending = false
		n.session.queueUnlockLocked(e, 0)
	}
}
