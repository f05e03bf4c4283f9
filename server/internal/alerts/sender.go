package alerts

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/exactly-one/tenure/internal/wakeup"
	"github.com/exactly-one/tenure/server/internal/notifiers"
)

// The pause of a notifier after consecutive failures: the waiting messages would fail as
// well.
const (
	leastPause = 2 * time.Second
	mostPause  = time.Minute
)

// sender sends by one notifier.
type sender struct {
	*termWork
	notifier *notifiers.Notifier
	limiter  *limiter
	log      *slog.Logger
	unnoted  []message // acknowledged, but not yet recorded in the database
}

// run sends until the context ends, and then makes a last attempt to record the sent
// messages.
func (s *sender) run(ctx context.Context) {
	defer func() {
		if err := s.noteSent(ctx); err != nil {
			s.log.Warn("notifications", "error", err)
		}
	}()
	refresh := s.notifier.Refresh()
	refreshed := time.Now()
	failures := 0
	for ctx.Err() == nil {
		outboxFilled := s.awaitOutbox()
		wait, err := s.pass(ctx, outboxFilled)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			wait, outboxFilled = pauseAfter(err, failures), nil
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
		wakeup.Await(ctx, wait, outboxFilled)
	}
}

// pauseAfter is how long a notifier pauses after the last of several errors.
func pauseAfter(err error, failures int) time.Duration {
	return max(min(leastPause<<min(failures, 10), mostPause), retryDelay(err))
}

// retryDelay is when a receiver wants to be asked again; 0 if it did not say so.
func retryDelay(err error) time.Duration {
	if later, ok := errors.AsType[*notifiers.RetryAfterError](err); ok {
		return later.Delay
	}
	return 0
}

// pass sends due messages until there is a new one, which may be more urgent. It returns
// how long to wait. After a failure it skips the address for the rest of the pass, but
// not the others: only one of a notifier's channels may be gone.
func (s *sender) pass(ctx context.Context, outboxFilled <-chan struct{}) (wait time.Duration, err error) {
	reading, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	if err := s.noteSent(reading); err != nil {
		return 0, err
	}
	messages, err := s.readDue(reading, s.notifier.Name(), s.notifier.Batch())
	if err != nil {
		return 0, err
	}
	failed := map[string]error{}
	for _, m := range messages {
		if failed[m.address] != nil {
			continue
		}
		if err := s.send(ctx, m); err != nil {
			failed[m.address] = err
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-outboxFilled:
			return 0, joined(failed)
		default:
		}
	}
	if len(messages) > 0 {
		return 0, joined(failed) // there may be more: of an alert only the first was due
	}
	wait, pending, err := s.readNextDue(reading, s.notifier.Name())
	if err != nil || !pending {
		return pollInterval, err
	}
	return min(max(wait, 0), pollInterval), nil
}

// joined is all errors of some addresses as one.
func joined(failed map[string]error) error {
	var all []error
	for _, err := range failed {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// send makes one attempt with a message. If the receiver refuses the contents, send sends
// the message again in halves, for the other alerts to arrive. A single refused alert is
// tried again later, and delays nothing.
func (s *sender) send(ctx context.Context, m message) error {
	if err := s.pause(ctx, s.limiter.take(time.Now())); err != nil {
		return err
	}
	noting, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	if claimed, err := s.claim(noting, s.term, m); err != nil || !claimed {
		return err
	}
	_, target, _ := strings.Cut(m.address, ":") // the attempt reports a faulty address
	term := s.term.Context()                    // an attempt in flight may end where no new one may begin
	failure := s.notifier.Send(term, target, s.engine.batch(m.incident, m.alerts))
	if failure == nil {
		s.unnoted = append(s.unnoted, m)
		return s.noteSent(term)
	}
	if term.Err() != nil {
		return failure // interrupted: the next leader tries again
	}
	_, refused := errors.AsType[*notifiers.RefusedError](failure)
	_, partial := errors.AsType[*notifiers.PartialError](failure)
	if refused && len(m.alerts) > 1 {
		var failures []error
		for _, half := range m.halves() {
			failures = append(failures, s.send(ctx, half))
		}
		return errors.Join(failures...)
	}
	noting, cancel = context.WithTimeout(term, roundTimeout)
	defer cancel()
	err := s.settleUnsent(noting, m, failure, retryDelay(failure))
	if refused {
		s.log.Warn("an alert is refused", "alert", m.alerts[0].Name, "error", failure)
		return err
	}
	if partial { // what waits behind does not fail as well
		s.log.Warn("some recipients did not get an alert yet", "alert", m.alerts[0].Name, "error", failure)
		return err
	}
	return errors.Join(failure, err)
}

// noteSent records acknowledged messages, also after an earlier failure to record them:
// they must not be sent again.
func (s *sender) noteSent(ctx context.Context) error {
	for len(s.unnoted) > 0 {
		if err := s.settleSent(ctx, s.unnoted[0]); err != nil {
			return err
		}
		s.unnoted = s.unnoted[1:]
	}
	return nil
}

func (*sender) pause(ctx context.Context, wait time.Duration) error {
	if wait > 0 {
		wakeup.Sleep(ctx, wait)
	}
	return ctx.Err()
}

// refresh sends firing alerts again if the notifier would forget them otherwise.
func (s *sender) refresh(ctx context.Context) {
	var firing []notifiers.Alert
	for _, a := range s.engine.firing() {
		for _, address := range a.Notified {
			if notifiers.NameOf(address) == s.notifier.Name() {
				firing = append(firing, notifiers.Alert{
					Name: a.Rule, Severity: a.Severity, Labels: a.Labels, Annotations: a.Annotations, Value: a.Value, Since: a.since(), StartedAt: a.FiredAt,
				})
				break
			}
		}
	}
	for len(firing) > 0 && ctx.Err() == nil {
		n := min(len(firing), s.notifier.Batch())
		if err := s.notifier.Send(ctx, "", s.engine.batch("", firing[:n])); err != nil && ctx.Err() == nil {
			s.log.Warn("the alerts that fire could not be sent again", "error", err)
			return
		}
		firing = firing[n:]
	}
}
