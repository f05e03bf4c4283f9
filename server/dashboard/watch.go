package dashboard

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/exactly-one/tenure/history"
)

// recheckDelays are the pauses before further reads after a notification: a vacancy is
// announced, but the term begun shortly afterwards is not.
var recheckDelays = [...]time.Duration{
	10 * time.Millisecond, 30 * time.Millisecond, 100 * time.Millisecond, 400 * time.Millisecond, time.Second, 3 * time.Second,
}

// watch reads the database until the context ends.
func (d *Dashboard) watch(ctx context.Context) {
	var listening sync.WaitGroup
	defer listening.Wait()
	listening.Go(func() { d.listen(ctx) })
	w := watcher{Dashboard: d}
	defer w.calls.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for looked := len(recheckDelays); ; {
		if d.audience.rest(ctx) {
			d.snapshot.resume()
		}
		began := time.Now()
		w.poll(ctx, looked < len(recheckDelays))
		d.audience.read()
		took := time.Since(began)
		timer.Reset(pauseAfter(looked, d.snapshot.pace(), took))
		looked = min(looked+1, len(recheckDelays))
		select {
		case <-d.wake:
			looked = 0
			if !sleep(ctx, took) {
				return
			}
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
}

// pauseAfter returns the pause before the next read, after so many reads since a
// notification. It is never longer than without one, and reading takes at most a third of
// the time.
func pauseAfter(looked int, pace, took time.Duration) time.Duration {
	if looked == len(recheckDelays) {
		return pace
	}
	return max(min(recheckDelays[looked], pace), 2*took)
}

// sleep waits, and reports whether the context has not ended.
func sleep(ctx context.Context, pause time.Duration) bool {
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}

// listen forwards the database's notifications. While it fails, the watch depends on its
// intervals.
func (d *Dashboard) listen(ctx context.Context) {
	for ctx.Err() == nil {
		if err := d.config.Backend.Listen(ctx, d.notify); err != nil {
			d.log.Debug("the dashboard cannot listen for notifications", "error", err)
		}
		if !sleep(ctx, nodesInterval) {
			return
		}
	}
}

// poll reads the possible changes and publishes them.
func (w *watcher) poll(ctx context.Context, news bool) {
	limited, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	all := news || time.Since(w.allAt) >= allInterval
	reading, err := w.read(limited, all)
	if err == nil && w.workDue(news) {
		w.readWork(ctx)
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		if w.snapshot.failed(err) {
			w.log.Warn("the dashboard cannot read the database", "error", err)
		}
		w.publishIfChanged(kindIncidents, &w.told, w.snapshot.incidentsNow())
		w.publishState(kindNow, w.snapshot.now())
		return
	}
	change := w.snapshot.update(reading)
	if change.missing {
		w.wholeAt = time.Time{}
	}
	if change.rewound {
		w.timelines.clear()
		w.samples.forget()
	}
	if len(change.Roles)+len(change.Events) > 0 || change.More {
		w.timelines.follow(reading.terms)
		w.publish(change.bounded())
	}
	if all {
		w.readOutages(limited, reading)
	}
	w.readBlocked(limited)
	w.regroup()
	w.publishIfChanged(kindIncidents, &w.told, w.snapshot.incidentsNow())
	w.publishState(kindNow, w.snapshot.now())
}

// readOutages reads the outages if nodes opened sessions. Unreadable outages stay
// unchanged.
func (w *watcher) readOutages(ctx context.Context, r reading) {
	if w.snapshot.isNews(r.nodes) {
		w.outagesUntil = time.Now().Add(settleTime)
	}
	if time.Now().After(w.outagesUntil) || time.Since(w.outagesAt) < nodesInterval { // further reads are urgent then
		return
	}
	w.outagesAt = time.Now()
	outages, err := w.config.Backend.Outages(ctx, history.Query{Limit: maxOutages})
	if err != nil {
		w.log.Debug("the dashboard cannot read the outages", "error", err)
		return
	}
	w.snapshot.setOutages(outages)
}

// read reads, if all is set, the terms and the changes of nodes, and then the nodes. A
// term begun in between is shown after the next read.
func (w *watcher) read(ctx context.Context, all bool) (r reading, err error) {
	began := time.Now()
	if all {
		if r, err = w.readPast(ctx, began); err != nil {
			return r, err
		}
	}
	if r.members, err = w.config.Backend.Members(ctx); err != nil {
		return r, err
	}
	r.clock = clockOf(r.members)
	r.showable()
	if all {
		w.allAt = began
		if r.whole {
			w.wholeAt = began
		}
		w.advance(r)
		if died := w.snapshot.deathOfReturned(r.nodes); !died.IsZero() && died.Add(-overlap).Before(w.readFrom) {
			w.readFrom, w.rewound = died.Add(-overlap), true
		}
	}
	return r, nil
}

// advance moves readFrom to shortly before a reading, by the database's clock, which may
// be behind after a server change.
func (w *watcher) advance(r reading) {
	to := r.clock.Add(-overlap)
	if r.clock.IsZero() { // no node reports it
		to = w.readFrom
		for _, t := range r.terms {
			for _, at := range []time.Time{t.Began, t.Ended} {
				if at = at.Add(-overlap); at.After(to) {
					to = at
				}
			}
		}
	}
	w.rewound = to.Before(w.readFrom)
	w.readFrom = to
}

// readPast reads terms and changes of nodes since readFrom.
func (w *watcher) readPast(ctx context.Context, began time.Time) (r reading, err error) {
	if w.readFrom.IsZero() {
		return w.readFirst(ctx)
	}
	backend := w.config.Backend
	r.again = w.rewound
	query := history.Query{Since: w.readFrom, Limit: maxRead}
	if r.terms, err = backend.History(ctx, query); err != nil {
		return r, err
	}
	if began.Sub(w.wholeAt) >= wholeInterval {
		last, err := backend.History(ctx, history.Query{Latest: true, Limit: maxRead})
		if err != nil {
			return r, err
		}
		r.terms, r.whole = append(last, r.terms...), true
	}
	r.nodes, err = backend.NodeHistory(ctx, query)
	return r, err
}

// maxRead bounds the rows of one read. It is more than the possible number of roles of an
// installation: its locks limit them.
const maxRead = 250_000

// readFirst reads the past at the start of this process.
func (w *watcher) readFirst(ctx context.Context) (r reading, err error) {
	backend := w.config.Backend
	recent, err := backend.History(ctx, history.Query{Limit: maxTerms})
	if err != nil {
		return r, err
	}
	last, err := backend.History(ctx, history.Query{Latest: true, Limit: maxRead})
	if err != nil {
		return r, err
	}
	r.nodes, err = backend.NodeHistory(ctx, history.Query{Limit: maxEvents / 2})
	r.terms, r.whole = slices.Concat(last, recent), true
	return r, err
}
