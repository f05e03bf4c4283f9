package dashboard

import (
	"context"
	"time"

	"github.com/exactly-one/tenure/internal/program/record"
)

// The intervals of reads of processors and schedules. Their figures change with every
// batch and run, so they are not read after every notification; failures cause none.
const (
	newsInterval = 500 * time.Millisecond // after a notification
	workInterval = time.Second            // while there are any
)

// oldLag is the age from which the page shows when a lag was measured. A leader measures
// at least every 15 s.
const oldLag = time.Minute

// workDue reports whether to read processors and schedules: if there are any, every
// second, or for a tenth of the time if reading takes longer.
func (w *watcher) workDue(news bool) bool {
	interval := allInterval
	switch {
	case news:
		interval = newsInterval
	case w.snapshot.hasWork():
		interval = min(max(workInterval, 10*w.workTook), allInterval)
	}
	return time.Since(w.workAt) >= interval
}

// hasWork reports whether there is a processor or a schedule.
func (p *snapshot) hasWork() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.work.Processors)+len(p.work.Schedules) > 0
}

// readWork reads processors, schedules and alerts, and publishes changes. Unreadable ones
// stay unchanged, and the page shows their age: the database's user may have fewer
// privileges than the backend's.
func (w *watcher) readWork(ctx context.Context) {
	w.workAt = time.Now()
	work, err := limited(ctx, w.readManagement)
	w.workTook = time.Since(w.workAt)
	if err != nil {
		if !w.failed {
			w.log.Warn("the dashboard cannot read processors and schedules", "error", err)
		}
		work = w.snapshot.workNow()
	}
	if w.failed = err != nil; !w.failed {
		work.keepErrors(w.snapshot.workNow())
	}
	alerts, failure := limited(ctx, w.readAlerts)
	if failure != nil {
		w.log.Warn("the dashboard cannot read the alerts", "error", failure)
		alerts = w.snapshot.alertsNow()
	} else {
		alerts = w.config.linkAlerts(alerts)
	}
	if alerts == nil {
		alerts = []Alert{} // an empty list, not none, in JSON
	}
	if !w.failed {
		w.lags.add(w.snapshot.clockNow(), work.Processors)
	}
	w.snapshot.setWork(work, alerts)
	w.snapshot.noteUnread(w.workAt, err, failure)
	w.publishIfChanged(kindWork, &w.work, work)
	w.publishIfChanged(kindAlerts, &w.alerts, alerts)
}

// limited bounds a read. Each read has its own limit: otherwise a slow one would make the
// next one fail too.
func limited[R any](ctx context.Context, read func(context.Context) (R, error)) (R, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return read(ctx)
}

func (w *watcher) readManagement(ctx context.Context) (workRecord, error) {
	work := workRecord{Processors: []processorRecord{}, Schedules: []scheduleRecord{}, Retention: []retentionRecord{}}
	if w.processors == nil {
		return work, nil
	}
	work.Shown = true
	processors, err := w.processors.List(ctx)
	if err != nil {
		return work, err
	}
	for _, s := range processors {
		var old *time.Time
		if w.snapshot.clockNow().Sub(s.MeasuredAt) > oldLag {
			old = when(s.MeasuredAt)
		}
		work.Processors = append(work.Processors, processorRecord{
			Name: s.Name, Kind: s.Kind, Role: s.Role, Status: s.Status, Led: s.Led, Busy: s.Busy, NodeName: s.NodeName,
			Processed: s.Processed, Behind: s.Behind, BehindAsOf: old, Waiting: when(s.WaitingSince), Errors: s.Errors, LastError: s.LastError,
			NextAttempt: when(s.NextAttemptAt), Stuck: s.StuckError, StuckSince: when(s.StuckSince), DeadLetters: s.DeadLetters, Skipped: s.Skipped, Failing: record.NewProcessor(s).Failing,
		})
	}
	schedules, err := w.schedules.List(ctx)
	if err != nil {
		return work, err
	}
	for _, s := range schedules {
		r := scheduleRecord{
			Name: s.Name, Status: record.ScheduleStatus(s), Expression: s.Expression, Zone: s.Zone, Role: s.Role, Loaded: s.Loaded, Paused: s.Paused, Next: when(s.Next),
			Waiting: s.Waiting, Running: s.Running, Failures: s.Failures, FailedInRow: s.FailedInRow,
			Ahead: s.Ahead.Seconds(), Overdue: s.Overdue.Seconds(),
		}
		if s.Problem != nil {
			r.Problem = s.Problem.Error()
		}
		if !s.FailingSince.IsZero() {
			r.LastError = s.LastError
		}
		if s.Last != nil {
			last := record.NewRun(*s.Last)
			r.Last = &last
		}
		work.Schedules = append(work.Schedules, r)
	}
	work.Retention = w.readRetention(ctx)
	work.judge()
	return work, nil
}

func (p *snapshot) setWork(work workRecord, alerts []Alert) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.work, p.alerts = work, alerts
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *snapshot) workNow() workRecord {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.work
}

func (p *snapshot) alertsNow() []Alert {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.alerts
}

// noteUnread notes the results of the reads of processors and schedules, and of alerts.
func (p *snapshot) noteUnread(at time.Time, work, alerts error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unread.work.note(at, work)
	p.unread.alerts.note(at, alerts)
}
