package alerts

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/exactly-one/tenure/cmd/tenure/internal/notifiers"
)

const (
	// lookAgain is the most time between two looks for what is to be sent.
	lookAgain = time.Minute
	// The pause of a notifier after attempts that failed one after the other:
	// what waits behind would fail as well.
	leastPause = 2 * time.Second
	mostPause  = time.Minute
)

// deliver sends what is pending until the term ends, by each notifier on its own,
// so that a slow one delays no other.
func (l *leading) deliver(ctx context.Context) {
	for ctx.Err() == nil {
		set, changed := l.engine.notifiers()
		until, stop := context.WithCancel(ctx)
		var senders sync.WaitGroup
		for _, n := range set {
			s := &sender{l, n, newLimiter(n.PerMinute()), l.log.With("notifier", n.Name())}
			senders.Go(func() { s.run(until) })
		}
		senders.Go(func() { l.keepTidy(until, set) })
		select {
		case <-ctx.Done():
		case <-changed:
		}
		stop()
		senders.Wait()
	}
}

// keepTidy tidies up at once and then every minute.
func (l *leading) keepTidy(ctx context.Context, set notifiers.Set) {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		news := l.awaitNews()
		if err := l.tidy(ctx, set, l.node); err != nil && ctx.Err() == nil {
			l.log.Warn("notifications", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-news:
		}
	}
}

// sender sends by one notifier.
type sender struct {
	*leading
	notifier *notifiers.Notifier
	limiter  *limiter
	log      *slog.Logger
}

// run sends until the context ends.
func (s *sender) run(ctx context.Context) {
	refresh := s.notifier.Refresh()
	refreshed := time.Now()
	failures := 0
	for ctx.Err() == nil {
		news := s.awaitNews()
		wait, err := s.pass(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			wait, news = min(leastPause<<min(failures, 10), mostPause), nil
			failures++
			s.log.Warn("a notification was not sent", "error", err, "again_in", wait)
		default:
			failures = 0
		}
		if refresh > 0 {
			if time.Since(refreshed) >= refresh {
				refreshed = time.Now()
				s.refresh(ctx)
			}
			wait = min(wait, max(0, refresh-time.Since(refreshed)))
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-news:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// pass sends what is due, up to the first failure, and returns how long to wait.
func (s *sender) pass(ctx context.Context) (wait time.Duration, err error) {
	reading, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	messages, err := s.readDue(reading, s.notifier.Name(), s.notifier.Batch())
	if err != nil {
		return 0, err
	}
	for _, m := range messages {
		if err := s.send(ctx, m); err != nil {
			return 0, err
		}
	}
	if len(messages) > 0 {
		return 0, nil // there may be more: of an alert only the first was due
	}
	wait, pending, err := s.readNextDue(reading, s.notifier.Name())
	if err != nil || !pending {
		return lookAgain, err
	}
	return min(max(wait, 0), lookAgain), nil
}

// send makes one attempt with a message.
func (s *sender) send(ctx context.Context, m message) error {
	if err := s.pause(ctx, s.limiter.take(time.Now())); err != nil {
		return err
	}
	noting, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	if claimed, err := s.claim(noting, s.term, m); err != nil || !claimed {
		return err
	}
	_, target, _ := (notifiers.Set{s.notifier.Name(): s.notifier}).Find(m.address) // what is wrong with a target, the attempt tells
	term := s.term.Context()                                                       // an attempt in flight may end where no new one may begin
	failure := s.notifier.Send(term, target, m.alerts)
	if failure == nil {
		return s.settleSent(term, m)
	}
	if term.Err() != nil {
		return failure // interrupted: whoever leads next tries again
	}
	var later *notifiers.RetryAfterError
	var delay time.Duration
	if errors.As(failure, &later) {
		delay = later.Delay
	}
	noting, cancel = context.WithTimeout(term, roundTimeout)
	defer cancel()
	return errors.Join(failure, s.settleUnsent(noting, m, failure, delay))
}

func (*sender) pause(ctx context.Context, wait time.Duration) error {
	if wait == 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// refresh tells again what fires, where that would be forgotten otherwise.
func (s *sender) refresh(ctx context.Context) {
	var firing []notifiers.Alert
	for _, a := range s.engine.firing() {
		for _, address := range a.Notified {
			if notifiers.NameOf(address) == s.notifier.Name() {
				firing = append(firing, notifiers.Alert{
					Name: a.Rule, Severity: a.Severity, Labels: a.Labels, Annotations: a.Annotations, Value: a.Value, StartedAt: a.FiredAt,
				})
				break
			}
		}
	}
	for len(firing) > 0 && ctx.Err() == nil {
		n := min(len(firing), s.notifier.Batch())
		if err := s.notifier.Send(ctx, "", firing[:n]); err != nil && ctx.Err() == nil {
			s.log.Warn("what fires could not be told again", "error", err)
			return
		}
		firing = firing[n:]
	}
}
