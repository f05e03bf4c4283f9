package dashboard

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/exactly-one/tenure/postgres"
)

// When the database is looked at, in case no news comes.
const (
	nodesInterval = 2 * time.Second // the registry: one statement
	allInterval   = 5 * time.Second // everything
	lookTimeout   = 5 * time.Second
	// overlap is how far back a look reads again, since a transaction that commits
	// late carries an earlier time.
	overlap = time.Minute
)

// aftermath is when to look again after news: a vacancy is announced, the term
// that begins shortly after is not.
var aftermath = [...]time.Duration{
	10 * time.Millisecond, 30 * time.Millisecond, 100 * time.Millisecond, 400 * time.Millisecond, time.Second, 3 * time.Second,
}

// watch looks at the database until the context ends.
func (d *Dashboard) watch(ctx context.Context) {
	var listening sync.WaitGroup
	defer listening.Wait()
	listening.Go(func() { d.listen(ctx) })
	w := watcher{Dashboard: d}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for looked := len(aftermath); ; {
		began := time.Now()
		w.look(ctx, looked < len(aftermath))
		took := time.Since(began)
		pause := nodesInterval
		if looked < len(aftermath) {
			pause = max(aftermath[looked], 2*took) // looking takes at most a third of the time
			looked++
		}
		timer.Reset(pause)
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

// sleep waits, and reports whether the context still lives.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// listen passes the database's news on. While that does not work, looking every
// few seconds has to do.
func (d *Dashboard) listen(ctx context.Context) {
	for ctx.Err() == nil {
		if err := d.config.Backend.Listen(ctx, d.poke); err != nil {
			d.log.Debug("the dashboard cannot listen for news", "error", err)
		}
		if !sleep(ctx, nodesInterval) {
			return
		}
	}
}

// poke has the watch look at once.
func (d *Dashboard) poke() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// watcher is what one goroutine knows between two looks.
type watcher struct {
	*Dashboard
	allAt  time.Time // when everything was read last
	workAt time.Time
	mark   time.Time // the database's clock at the last reading of all
	work   string    // as it was told last
	failed bool      // to read processors and schedules, the last time
	alerts string
}

// look reads what may have changed and tells it.
func (w *watcher) look(ctx context.Context, news bool) {
	limited, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	all := news || time.Since(w.allAt) >= allInterval
	reading, err := w.read(limited, all)
	if err == nil && time.Since(w.workAt) >= workInterval(news) {
		w.readWork(limited)
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		if w.picture.failed(err) {
			w.log.Warn("the dashboard cannot read the database", "error", err)
		}
		w.feed.tell(kindNow, w.picture.now())
		return
	}
	if change := w.picture.update(reading); len(change.Roles)+len(change.Events) > 0 || change.More {
		w.timelines.follow(reading.terms)
		w.feed.publish(change.bounded())
	}
	w.feed.tell(kindNow, w.picture.now())
}

// bounded leaves out what is too much to tell everybody.
func (c changeRecord) bounded() changeRecord {
	if len(c.Roles) > maxRolesTold || len(c.Events) > maxEventsTold {
		return changeRecord{Roles: []roleRecord{}, Events: []eventRecord{}, More: true}
	}
	return c
}

// read reads the nodes, and if all is wanted what became of terms and nodes. The
// nodes come first: a term that they do not explain yet began after that, and is
// shown as led at the next look.
func (w *watcher) read(ctx context.Context, all bool) (r reading, err error) {
	backend := w.config.Backend
	if !all {
		r.members, err = backend.Members(ctx)
		return r, err
	}
	began := time.Now()
	query := postgres.HistoryQuery{Since: w.mark, Limit: maxRead}
	if w.mark.IsZero() {
		if r, err = w.readFirst(ctx); err != nil {
			return r, err
		}
	} else {
		if r.terms, err = backend.History(ctx, query); err != nil {
			return r, err
		}
		if r.nodes, err = backend.NodeHistory(ctx, query); err != nil {
			return r, err
		}
	}
	if r.members, err = backend.Members(ctx); err != nil {
		return r, err
	}
	w.allAt = began
	for _, m := range r.members {
		if at := m.LastHeartbeat.Add(m.SilentFor).Add(-overlap); at.After(w.mark) {
			w.mark = at
		}
	}
	for _, t := range r.terms {
		for _, at := range []time.Time{t.Began, t.Ended} {
			if at = at.Add(-overlap); at.After(w.mark) {
				w.mark = at
			}
		}
	}
	return r, nil
}

// maxRead bounds the rows of one reading; it is above what an installation can
// have of roles, by its locks.
const maxRead = 250_000

// readFirst reads what was before this process looked.
func (w *watcher) readFirst(ctx context.Context) (r reading, err error) {
	backend := w.config.Backend
	recent, err := backend.History(ctx, postgres.HistoryQuery{Limit: maxTerms})
	if err != nil {
		return r, err
	}
	last, err := backend.History(ctx, postgres.HistoryQuery{Latest: true, Limit: maxRead})
	if err != nil {
		return r, err
	}
	r.nodes, err = backend.NodeHistory(ctx, postgres.HistoryQuery{Limit: maxEvents / 2})
	r.terms = slices.Concat(last, recent)
	return r, err
}
