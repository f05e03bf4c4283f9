package alerts

import (
	"context"
	"sync"
	"time"

	"github.com/exactly-one/tenure/server/internal/notifiers"
)

// pollInterval is the longest time between two reads of due messages.
const pollInterval = time.Minute

// deliver sends pending notifications until the term ends. Each notifier sends on its
// own: a slow one delays no other. Acknowledged and not yet recorded notifications
// outlive a change of the notifiers.
func (l *termWork) deliver(ctx context.Context) {
	unnoted := map[string][]message{} // by the notifier
	for ctx.Err() == nil {
		set, changed := l.engine.notifiers()
		until, stop := context.WithCancel(ctx)
		var senders sync.WaitGroup
		var all []*sender
		for _, n := range set {
			s := &sender{termWork: l, notifier: n, limiter: newLimiter(n.PerMinute()), log: l.log.With("notifier", n.Name()), unnoted: unnoted[n.Name()]}
			all = append(all, s)
			senders.Go(func() { s.run(until) })
		}
		senders.Go(func() { l.keepTidy(until, set) })
		select {
		case <-ctx.Done():
		case <-changed:
		}
		stop()
		senders.Wait()
		for _, s := range all {
			unnoted[s.notifier.Name()] = s.unnoted
		}
		if err := l.retryAtOnce(ctx); err != nil && ctx.Err() == nil {
			l.log.Warn("notifications", "error", err)
		}
	}
}

// retryAtOnce makes waiting retries due: the notifiers have changed, perhaps to mend
// them.
func (l *termWork) retryAtOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	return l.makeDue(ctx)
}

// keepTidy tidies up immediately and then every minute.
func (l *termWork) keepTidy(ctx context.Context, set notifiers.Set) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		outboxFilled := l.awaitOutbox()
		if err := l.tidyOnce(ctx, set); err != nil && ctx.Err() == nil {
			l.log.Warn("notifications", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-outboxFilled:
		}
	}
}

func (l *termWork) tidyOnce(ctx context.Context, set notifiers.Set) error {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	dropped, err := l.tidy(ctx, set, l.node)
	if dropped > 0 {
		l.log.Warn("alerts begin and end faster than notifications can be sent; some were dropped", "left_out", dropped)
	}
	if err == nil {
		err = l.pruneRecords(ctx)
	}
	return err
}
