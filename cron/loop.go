package cron

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/exactly-one/tenure/internal/reach"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// retryPause is the time between attempts while the database fails.
const retryPause = time.Second

// notifyPause is the minimum time between two reads of the schedules after notifications.
// Most of these can be about other things.
const notifyPause = 50 * time.Millisecond

// maxStarts is how many waiting runs of a schedule with OverlapAllow are
// started together.
const maxStarts = 100

// maxEnds is how many ends of runs are recorded together, for the sake of the
// length of their output.
const maxEnds = 100

// schedule is the state of a schedule in one term.
type schedule struct {
	timetable

	loaded       bool // its row belongs to this term
	refused      bool // its row belongs to another role
	paused       bool
	handledUntil time.Time
	next         time.Time // when the next tick is due; zero if there is none
	waiting      int       // runs waiting to start
	startAt      time.Time // when the next of them may start: later if it waits for a retry
	running      int       // runs without a recorded end
}

// loop runs schedules in one term. One goroutine does everything except the
// jobs, so it owns all state; jobs report their outcomes to it.
type loop struct {
	work
	config    Config
	log       *slog.Logger
	wakeups   <-chan struct{} // something may have changed
	replaced  <-chan struct{} // the schedules were replaced
	source    func() []timetable
	schedules []*schedule
	byName    map[string]*schedule
	removed   []string          // removed schedules with rows that do not show it yet
	declared  []string          // the names of the program's schedules; never nil: it would be NULL in SQL
	overrides map[string]string // the operators' settings, by schedule, as stored

	begun          bool      // runs of earlier terms have been taken over
	orphansAt      time.Time // when to look again for runs without a leader
	orphanWait     time.Duration
	began          time.Time
	failures       failures
	reach          reach.Watch
	schedulesKnown bool // the schedules match their rows
	readAt         time.Time
	clock          databaseClock

	active map[int64]*schedule // by the id of the run
	jobs   sync.WaitGroup

	finished chan struct{} // there are outcomes
	mu       sync.Mutex
	outcomes []outcome // not recorded yet
}

// run runs the schedules until the term ends, or until it is stopping and no
// job runs. It logs database errors and retries. The error says why another node should
// lead.
func (l *loop) run(ctx context.Context) error {
	defer l.jobs.Wait()
	for ctx.Err() == nil {
		stopping, began := l.stopping(), time.Now()
		if err := l.step(ctx, stopping); err != nil {
			if ctx.Err() == nil {
				l.log.Warn("running schedules failed; retrying", "error", err)
				l.recordFailure(ctx, err)
			}
			if err := l.reach.Failed(ctx, began); err != nil && !l.jobsRun() {
				return err
			}
			l.schedulesKnown = false
			wakeup.Sleep(ctx, retryPause)
			continue
		}
		l.reach.Worked()
		if stopping && len(l.active) == 0 {
			return nil
		}
		l.wait(ctx, stopping)
	}
	return nil
}

// jobsRun reports whether a job has not returned.
func (l *loop) jobsRun() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.active) > len(l.outcomes)
}

func (l *loop) stopping() bool {
	return wakeup.Closed(l.term.Stopping())
}

// step performs all due work.
func (l *loop) step(ctx context.Context, stopping bool) error {
	if !stopping && (!l.schedulesKnown || time.Since(l.readAt) >= l.config.PollInterval) {
		if l.readAt.IsZero() { // load would store the program's declarations over the operators' settings
			if err := l.read(ctx); err != nil {
				return err
			}
		}
		if err := l.release(ctx); err != nil {
			return err
		}
		if err := l.load(ctx); err != nil {
			return err
		}
		if err := l.read(ctx); err != nil {
			return err
		}
		if err := l.endOrphans(ctx); err != nil {
			return err
		}
	}
	b := l.prepare()
	if !b.empty() {
		if err := l.writeBatch(ctx, b); err != nil {
			return err
		}
	}
	return l.recordWorking(ctx)
}

// wait waits until there may be something to do.
func (l *loop) wait(ctx context.Context, stopping bool) {
	stop, wakeups, replaced := l.term.Stopping(), l.wakeups, l.replaced
	var timer <-chan time.Time
	if stopping {
		stop, wakeups, replaced = nil, nil, nil
	} else {
		timer = time.After(l.pause())
	}
	select {
	case <-ctx.Done():
	case <-stop:
	case <-timer:
	case <-l.finished:
	case <-replaced:
		l.adopt()
	case <-wakeups:
		l.schedulesKnown = false
		wakeup.Sleep(ctx, notifyPause-time.Since(l.readAt))
	}
}

// pause returns the time until something is due.
func (l *loop) pause() time.Duration {
	if !l.schedulesKnown {
		return 0
	}
	pause := l.config.PollInterval - time.Since(l.readAt)
	now := l.clock.now()
	for _, s := range l.schedules {
		if s.ticks() {
			pause = min(pause, s.next.Sub(now))
		}
		if s.loaded && s.waiting > 0 && (s.running == 0 || s.Overlap == OverlapAllow) {
			pause = min(pause, s.startAt.Sub(now))
		}
	}
	return pause
}

// ticks reports whether the schedule has a next tick.
func (s *schedule) ticks() bool { return s.loaded && !s.paused && !s.next.IsZero() }

// begin starts the job of a claimed run.
func (l *loop) begin(ctx context.Context, s *schedule, run Run) {
	run.Schedule, run.Term, run.begin, run.beginSQL = s.Name, l.term, l.marked, l.markedSQL
	run.output = &output{}
	run.ScheduledFor = run.ScheduledFor.In(s.expression.Zone())
	if !run.claimedAt.IsZero() {
		run.age = l.clock.now().Sub(run.claimedAt)
	}
	l.active[run.ID] = s
	s.running++
	log := l.log.With("schedule", s.Name, "scheduled_for", run.ScheduledFor, "attempt", run.Attempt)
	settings := s.Schedule // adopt can change s before the goroutine runs
	l.jobs.Go(func() { l.report(execute(ctx, settings, run, log)) })
}

// report passes the outcome of a run to the loop.
func (l *loop) report(o outcome) {
	l.mu.Lock()
	l.outcomes = append(l.outcomes, o)
	l.mu.Unlock()
	l.wakeUp()
}

// wakeUp makes the loop record outcomes.
func (l *loop) wakeUp() {
	wakeup.Send(l.finished)
}

// reported returns the first unrecorded outcomes.
func (l *loop) reported() []outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.outcomes), maxEnds)
	return l.outcomes[:n:n]
}

// recorded removes the first n outcomes.
func (l *loop) recorded(n int) {
	l.mu.Lock()
	l.outcomes = l.outcomes[n:]
	left := len(l.outcomes)
	l.mu.Unlock()
	if left > 0 {
		l.wakeUp()
	}
}
