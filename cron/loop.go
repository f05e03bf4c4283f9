package cron

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// retryPause is the time between attempts while the database fails.
const retryPause = time.Second

// newsPause is the least time between two readings of the schedules because of
// news, of which there can be much about other things.
const newsPause = 50 * time.Millisecond

// mostStarts is how many runs that wait are started at once, of a schedule that
// allows overlaps.
const mostStarts = 100

// schedule is a schedule in one term.
type schedule struct {
	timetable

	loaded       bool // its row belongs to this term
	refused      bool // its row belongs to another role
	paused       bool
	handledUntil time.Time
	next         time.Time // when the next tick is due; zero if none ever is
	waiting      int       // runs that may be started
	running      int       // runs whose end is not recorded
}

// loop runs schedules under one term. One goroutine does all of it but the jobs,
// so that it alone knows what runs: jobs hand it their outcomes.
type loop struct {
	work
	config    Config
	log       *slog.Logger
	news      <-chan struct{} // something may have changed
	replaced  <-chan struct{} // the schedules are others
	source    func() []timetable
	schedules []*schedule
	byName    map[string]*schedule
	dropped   []string // were left out, and their rows do not say so yet

	begun  bool // earlier terms have left nothing open
	known  bool // the schedules are as their rows
	readAt time.Time
	clock  databaseClock

	active map[int64]*schedule // by the id of the run
	jobs   sync.WaitGroup

	finished chan struct{} // there are outcomes
	mu       sync.Mutex
	outcomes []outcome // not recorded yet
}

// run works until the term ends, or was asked to end and no job runs any more.
// Errors of the database are logged and tried again: what else could a leader
// do.
func (l *loop) run(ctx context.Context) {
	defer l.jobs.Wait()
	for ctx.Err() == nil {
		stopping := l.stopping()
		if err := l.step(ctx, stopping); err != nil {
			if ctx.Err() == nil {
				l.log.Warn("running schedules failed; trying again", "error", err)
			}
			l.known = false
			sleep(ctx, retryPause)
			continue
		}
		if stopping && len(l.active) == 0 {
			return
		}
		l.wait(ctx, stopping)
	}
}

func (l *loop) stopping() bool {
	select {
	case <-l.term.Stopping():
		return true
	default:
		return false
	}
}

// step does everything that is to be done now.
func (l *loop) step(ctx context.Context, stopping bool) error {
	if !stopping && (!l.known || time.Since(l.readAt) >= l.config.PollInterval) {
		if err := l.release(ctx); err != nil {
			return err
		}
		if err := l.load(ctx); err != nil {
			return err
		}
		if err := l.read(ctx); err != nil {
			return err
		}
	}
	b := l.prepare()
	if b.empty() {
		return nil
	}
	return l.settle(ctx, b)
}

// wait waits until there may be something to do.
func (l *loop) wait(ctx context.Context, stopping bool) {
	stop, news, replaced := l.term.Stopping(), l.news, l.replaced
	var timer <-chan time.Time
	if stopping {
		stop, news, replaced = nil, nil, nil
	} else {
		t := time.NewTimer(l.pause())
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ctx.Done():
	case <-stop:
	case <-timer:
	case <-l.finished:
	case <-replaced:
		l.adopt()
	case <-news:
		l.known = false
		sleep(ctx, newsPause-time.Since(l.readAt))
	}
}

// pause is how long nothing is to be done.
func (l *loop) pause() time.Duration {
	if !l.known {
		return 0
	}
	pause := l.config.PollInterval - time.Since(l.readAt)
	now := l.clock.now()
	for _, s := range l.schedules {
		if s.ticks() {
			pause = min(pause, s.next.Sub(now))
		}
	}
	return pause
}

// ticks reports whether the schedule has a next tick.
func (s *schedule) ticks() bool { return s.loaded && !s.paused && !s.next.IsZero() }

// begin starts the job of a run that was claimed.
func (l *loop) begin(ctx context.Context, s *schedule, run Run) {
	run.Schedule, run.Term, run.begin = s.Name, l.term, l.marked
	run.ScheduledFor = run.ScheduledFor.In(s.expression.Zone())
	l.active[run.ID] = s
	s.running++
	log := l.log.With("schedule", s.Name, "scheduled_for", run.ScheduledFor, "attempt", run.Attempt)
	l.jobs.Go(func() { l.report(execute(ctx, s.Schedule, run, log)) })
}

// report hands the outcome of a run to the loop.
func (l *loop) report(o outcome) {
	l.mu.Lock()
	l.outcomes = append(l.outcomes, o)
	l.mu.Unlock()
	select {
	case l.finished <- struct{}{}:
	default:
	}
}

// reported returns the outcomes that are not recorded yet.
func (l *loop) reported() []outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.outcomes[:len(l.outcomes):len(l.outcomes)]
}

// recorded forgets the first n outcomes.
func (l *loop) recorded(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outcomes = l.outcomes[n:]
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
