package kubernetes

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/retry"
)

// Labeler keeps a label on the pod of a role's leader, for a Service to select it. It
// asks the API server after a term has begun or ended, so failures of the API server
// delay no election. Until then, no pod has the label, or a former leader's pod has it:
// the program must refuse requests meant for the leader alone. All candidates need a
// Labeler.
type Labeler struct {
	election *tenure.Election
	config   LabelConfig
	log      *slog.Logger
	changed  chan struct{} // receives a value when the election may have changed
	running  atomic.Bool

	labeled bool // this pod may have the label; used by Run
}

// NewLabeler returns a Labeler for an election. The caller starts and stops the
// election, and calls Run. The error matches tenure.ErrInvalidConfig.
func NewLabeler(election *tenure.Election, config LabelConfig) (*Labeler, error) {
	config = config.withDefaults(election.Role().Name())
	if err := config.validate(); err != nil {
		return nil, err
	}
	l := &Labeler{
		election: election, config: config, changed: make(chan struct{}, 1),
		log: election.Node().Logger().With("role", election.Role().Name(), "label", config.Label),
	}
	election.OnEvent(func(tenure.Event) {
		select {
		case l.changed <- struct{}{}:
		default:
		}
	})
	return l, nil
}

// How often a standby tries to remove the label from its pod. The next leader removes it,
// too.
const (
	removalAttempts = 10
	finalRemoval    = 5 * time.Second // after the end of Run's context
)

// pauses are the pauses between attempts. The leader tries until its term ends.
var pauses = retry.ExponentialBackoff{Base: 200 * time.Millisecond, Max: 15 * time.Second, Jitter: 0.5}

// Run keeps the label until ctx ends, and then removes it from this pod within 5 s.
// Errors of the API server are logged, and the requests are repeated. It returns
// tenure.ErrAlreadyStarted if Run is running, and otherwise nil.
func (l *Labeler) Run(ctx context.Context) error {
	if !l.running.CompareAndSwap(false, true) {
		return tenure.ErrAlreadyStarted
	}
	defer l.running.Store(false)
	l.labeled = true // by a container that ran in this pod before
	for ctx.Err() == nil {
		if term := l.election.Term(); term != nil {
			l.lead(ctx, term)
		} else {
			l.follow(ctx)
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalRemoval)
	defer cancel()
	for attempt := 1; l.labeled && ctx.Err() == nil; attempt++ {
		l.retreat(ctx, attempt)
		if l.labeled {
			sleep(ctx, pause(attempt))
		}
	}
	return nil
}

// lead keeps the label until the term or ctx ends.
func (l *Labeler) lead(ctx context.Context, term *tenure.Term) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(term.Context(), cancel)
	defer stop()
	for failures := 0; term.Valid() && ctx.Err() == nil; {
		next := l.config.ResyncInterval
		l.labeled = true // also if the response is lost
		if err := l.claim(ctx, term); err == nil {
			failures = 0
		} else if ctx.Err() == nil {
			failures++
			next = pause(failures)
			l.log.Warn("labeling the leader's pod failed", "attempt", failures, "again", next, "error", err)
		}
		sleep(ctx, next)
	}
}

// follow removes the label, unless the removal fails too often, and waits until this node
// may lead.
func (l *Labeler) follow(ctx context.Context) {
	for attempt := 1; l.election.Term() == nil && ctx.Err() == nil; attempt++ {
		if l.labeled && attempt <= removalAttempts {
			l.retreat(ctx, attempt)
		}
		if l.labeled && attempt < removalAttempts {
			l.awaitTerm(ctx, pause(attempt))
		} else {
			l.awaitTerm(ctx, 0)
		}
	}
}

// retreat tries to remove the label from this pod.
func (l *Labeler) retreat(ctx context.Context, attempt int) {
	err := l.remove(ctx, l.config.Pod)
	if l.labeled = err != nil; l.labeled {
		l.log.Warn("removing the label from this pod failed", "attempt", attempt, "error", err)
	}
}

func pause(attempt int) time.Duration {
	delay, _ := pauses.NextDelay(retry.Failure{Attempt: attempt})
	return delay
}

// awaitTerm waits for d, or without a limit if d is 0, until ctx ends or this node
// leads.
func (l *Labeler) awaitTerm(ctx context.Context, d time.Duration) {
	if d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	for l.election.Term() == nil {
		select {
		case <-ctx.Done():
			return
		case <-l.changed:
		}
	}
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}
