package cron_test

import (
	"context"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/retry"
)

// newClockWorld returns an installation on a server whose clock the test sets.
func newClockWorld(t *testing.T) (*world, *pgtest.Clock) {
	t.Helper()
	pgtest.Long(t)
	t.Parallel()
	server, clock := pgtest.StartWithClock(t, pgtest.Options{})
	i := postgrestest.On(t, server, server.Schema(t))
	i.Migrate("schedules")
	return &world{i, i.Pool, cron.NewAdmin(i.Backend, i.Pool)}, clock
}

// tally counts the runs of each tick.
type tally struct {
	mu   sync.Mutex
	runs map[time.Time]int
}

func (c *tally) job(_ context.Context, run cron.Run) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs == nil {
		c.runs = map[time.Time]int{}
	}
	c.runs[run.ScheduledFor.UTC()]++
	return nil
}

// between returns how many ticks of a span ran.
func (c *tally) between(from, to time.Time) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for tick := range c.runs {
		if tick.After(from) && !tick.After(to) {
			n++
		}
	}
	return n
}

// wantOnce fails the test if a tick ran twice.
func (c *tally) wantOnce(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for tick, n := range maps.All(c.runs) {
		if n != 1 {
			t.Errorf("the tick of %s ran %d times; want once", tick, n)
		}
	}
}

// After a clock that was ahead, schedules continue from the true time, and what did not
// happen in the false time is forgotten.
func TestSchedulesContinueAfterClockWasAhead(t *testing.T) {
	for name, by := range map[string]time.Duration{"10 minutes": 10 * time.Minute, "a year": 365 * 24 * time.Hour} {
		for _, catchUp := range []cron.CatchUp{cron.CatchUpNone, cron.CatchUpAll} {
			t.Run(name+" "+string(catchUp), func(t *testing.T) {
				w, clock := newClockWorld(t)
				var ran tally
				right := make(chan struct{})
				release := sync.OnceFunc(func() { close(right) })
				w.run(w.Node("a", tenure.Config{}), cron.Config{PollInterval: 100 * time.Millisecond}, cron.Schedule{
					Name: "job", Expression: "* * * * * *", CatchUp: catchUp, CatchUpLimit: 50, Job: func(ctx context.Context, run cron.Run) error {
						defer func() {
							if time.Until(run.ScheduledFor) > time.Minute {
								<-right // so that catch-up runs wait
							}
						}()
						return ran.job(ctx, run)
					},
				})
				t.Cleanup(release) // before the scheduler's, which waits for the job
				start := time.Now()
				w.Await("a tick of the true time", func() bool { return ran.between(start.Add(-time.Minute), time.Now()) > 0 })
				clock.Set(t, by)
				w.Await("a tick of the false time", func() bool { return ran.between(start.Add(by/2), time.Now().Add(by)) > 0 })
				clock.Set(t, 0)
				before := ran.between(start.Add(by/2), start.Add(2*by))
				release()
				back := time.Now()
				w.Await("ticks after the clock was right again", func() bool { return ran.between(back, time.Now()) >= 3 })

				if n := ran.between(start.Add(by/2), start.Add(2*by)); n != before {
					t.Errorf("%d ticks of the false time ran after it; want none", n-before)
				}
				w.Await("that no run waits", func() bool { return w.states("job")[cron.Waiting] == 0 })
				if n := one[int](w, `SELECT count(*)::integer FROM {runs} WHERE state IN ('missed', 'skipped') AND scheduled_for > $1`, time.Now().Add(30*time.Second)); n != 0 {
					t.Errorf("got %d rows of ticks that were missed in the future; want none", n)
				}
				status, err := w.management.Show(t.Context(), "job")
				if err != nil {
					t.Fatal(err)
				}
				if until := time.Until(status.Next); status.Ahead != 0 || until > 2*time.Second || until < -time.Second {
					t.Errorf("the next tick is in %v, ahead by %v; want it within 2s and 0", until, status.Ahead)
				}
				if status.Last == nil || time.Until(status.Last.ScheduledFor) > time.Second {
					t.Errorf("the last run is %+v; want one of the true time", status.Last)
				}
				changes, err := w.management.Changes(t.Context(), "job", 10)
				if err != nil || len(changes) != 1 || changes[0].Action != "clock" || !strings.HasPrefix(changes[0].Detail, "the clock was ahead: handled until ") {
					t.Errorf("got the changes %+v, %v; want one that says that the clock was ahead", changes, err)
				}
				ran.wantOnce(t)
			})
		}
	}
}

// While the clock shows a time that was handled, no tick starts, and NEXT says when one
// does. No tick runs twice.
func TestNoTickRunsTwiceAfterClockWasSetBack(t *testing.T) {
	for name, by := range map[string]time.Duration{"seconds": 5 * time.Second, "10 minutes": 10 * time.Minute, "a year": 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			w, clock := newClockWorld(t)
			var ran tally
			w.run(w.Node("a", tenure.Config{}), cron.Config{PollInterval: 100 * time.Millisecond},
				cron.Schedule{Name: "job", Expression: "* * * * * *", CatchUp: cron.CatchUpAll, Job: ran.job})
			start := time.Now()
			w.Await("a tick", func() bool { return ran.between(start.Add(-time.Minute), time.Now()) > 0 })
			clock.Set(t, -by)
			status, err := w.management.Show(t.Context(), "job")
			if err != nil {
				t.Fatal(err)
			}
			if isAhead := by > time.Minute; (status.Ahead > 0) != isAhead || status.Ahead > by || isAhead && status.Ahead < by-10*time.Second {
				t.Errorf("the schedule is ahead by %v; the clock was set back by %v", status.Ahead, by)
			}
			if status.Next.Before(status.HandledUntil) {
				t.Errorf("the next tick is %v; want it after those that are handled, until %v", status.Next, status.HandledUntil)
			}
			clock.Set(t, 0)
			back := time.Now()
			w.Await("ticks after the clock was right again", func() bool { return ran.between(back, time.Now()) >= 2 })
			if n := w.states("job")[cron.Missed]; n != 0 {
				t.Errorf("%d ticks were missed; want none", n)
			}
			if n := one[int](w, `SELECT count(*)::integer FROM {changes}`); n != 0 {
				t.Errorf("the schedule was turned back %d times; want never", n)
			}
			if n := ran.between(start.Add(-2*365*24*time.Hour), start.Add(-time.Minute)); n != 0 {
				t.Errorf("%d ticks ran that were handled before the test; want none", n)
			}
			ran.wantOnce(t)
		})
	}
}

// An outage looks like a clock that was ahead for a while. What ran after it does not run
// again when the clock is set back.
func TestClockSetBackAfterOutageRepeatsNoTick(t *testing.T) {
	w, clock := newClockWorld(t)
	var ran tally
	config := cron.Config{PollInterval: 100 * time.Millisecond, Grace: time.Second}
	schedule := cron.Schedule{Name: "job", Expression: "* * * * * *", Job: ran.job}
	stop := w.run(w.Node("a", tenure.Config{}), config, schedule)
	start := time.Now()
	w.Await("a tick", func() bool { return ran.between(start.Add(-time.Minute), time.Now()) > 0 })
	stop()
	handled := one[time.Time](w, `SELECT handled_until FROM {schedules}`)
	w.Await("that ticks are missed", func() bool { return time.Since(handled) > 4*time.Second })
	w.run(w.Node("b", tenure.Config{}), config, schedule)
	again := time.Now()
	w.Await("ticks after the outage", func() bool { return ran.between(again, time.Now()) >= 5 })

	clock.Set(t, -4*time.Second)
	w.Await("that the schedule was turned back", func() bool {
		return one[int](w, `SELECT count(*)::integer FROM {changes} WHERE action = 'clock'`) == 1
	})
	status, err := w.management.Show(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	latest := one[time.Time](w, `SELECT max(scheduled_for) FROM {runs}`)
	if !status.Next.After(latest) {
		t.Errorf("the next tick is %v, which has run; want it after %v", status.Next, latest)
	}
	w.Await("ticks that had not run", func() bool { return ran.between(latest, time.Now().Add(time.Minute)) >= 2 })
	if missed := w.states("job")[cron.Missed]; missed < 2 {
		t.Errorf("%d ticks were missed; want those of the outage", missed)
	}
	ran.wantOnce(t)
}

// What waits since the false time starts: a requested run, and a retry after its delay.
func TestRunsStartThatWaitSinceTheClockWasAhead(t *testing.T) {
	w, clock := newClockWorld(t)
	var fails, blocks tally
	held, free := make(chan struct{}, 10), make(chan struct{})
	w.run(w.Node("a", tenure.Config{}), cron.Config{PollInterval: 100 * time.Millisecond},
		cron.Schedule{Name: "fails", Expression: "0 0 1 1 *", Retries: 1, Backoff: constant(3 * time.Second), Job: func(ctx context.Context, run cron.Run) error {
			_ = fails.job(ctx, run)
			return cron.Retry(context.DeadlineExceeded)
		}},
		cron.Schedule{Name: "blocks", Expression: "0 0 1 1 *", Job: func(ctx context.Context, run cron.Run) error {
			held <- struct{}{}
			<-free
			return blocks.job(ctx, run)
		}})
	w.Await("the schedules", func() bool { all, err := w.management.List(t.Context()); return err == nil && len(all) == 2 })
	clock.Set(t, 1000*time.Hour)
	for _, name := range []string{"blocks", "blocks", "fails"} {
		if _, err := w.management.Trigger(t.Context(), name, "ann"); err != nil {
			t.Fatal(err)
		}
	}
	<-held
	w.Await("that the failed run waits", func() bool {
		return one[int](w, `SELECT count(*)::integer FROM {runs} WHERE schedule = 'fails' AND retry_at IS NOT NULL`) == 1
	})
	clock.Set(t, 0)
	close(free)
	w.Await("the requested run and the retry", func() bool {
		return w.states("blocks")[cron.Succeeded] == 2 && w.states("fails")[cron.Failed] == 1
	})
}

// constant is a backoff with one delay.
type constant time.Duration

func (c constant) NextDelay(retry.Failure) (time.Duration, bool) { return time.Duration(c), true }

// A leader of a later term turns back what one saw while the clock was ahead.
func TestNextLeaderContinuesAfterClockWasAhead(t *testing.T) {
	w, clock := newClockWorld(t)
	var ran tally
	config := cron.Config{PollInterval: 100 * time.Millisecond}
	schedule := cron.Schedule{Name: "job", Expression: "* * * * * *", CatchUp: cron.CatchUpLatest, Job: ran.job}
	stop := w.run(w.Node("a", tenure.Config{}), config, schedule)
	start := time.Now()
	w.Await("a tick", func() bool { return ran.between(start.Add(-time.Minute), time.Now()) > 0 })
	clock.Set(t, time.Hour)
	w.Await("a tick of the false time", func() bool { return ran.between(start.Add(30*time.Minute), time.Now().Add(time.Hour)) > 0 })
	stop()
	clock.Set(t, 0)
	w.run(w.Node("b", tenure.Config{}), config, schedule)
	back := time.Now()
	w.Await("ticks after the clock was right again", func() bool { return ran.between(back, time.Now()) >= 2 })
	ran.wantOnce(t)
}
