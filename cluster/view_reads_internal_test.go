package cluster

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
)

// countingView is a view whose reads a test counts. It runs in a bubble, where time
// passes only while everything waits.
type countingView struct {
	*view
	t       *testing.T
	wakeups chan struct{}

	lock     sync.Mutex
	begun    int // reads
	registry []tenure.Member
	failing  error
}

// read is the function with which the view reads.
func (v *countingView) read(context.Context) ([]tenure.Member, error) {
	v.lock.Lock()
	defer v.lock.Unlock()
	v.begun++
	return slices.Clone(v.registry), v.failing
}

// set changes what the next reads return.
func (v *countingView) set(failing error, registry ...tenure.Member) {
	v.lock.Lock()
	defer v.lock.Unlock()
	v.registry, v.failing = registry, failing
}

func (v *countingView) count() int {
	v.lock.Lock()
	defer v.lock.Unlock()
	return v.begun
}

const viewInterval = 5 * time.Second

// inBubble runs a test with a view that follows a store that reports changes.
func inBubble(t *testing.T, test func(v *countingView)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		v := &countingView{t: t, wakeups: make(chan struct{}, 1), registry: []tenure.Member{member(0)}}
		v.view = newView(v.read, viewInterval, clocks.System(), slog.New(slog.DiscardHandler))
		v.followReports(nil)
		ctx, cancel := context.WithCancel(t.Context())
		finished := make(chan struct{})
		go func() { // ends with the context
			defer close(finished)
			v.follow(ctx, v.wakeups)
		}()
		synctest.Wait()
		test(v)
		cancel()
		<-finished
	})
}

// pass lets time pass and checks how often the registry was read in it.
func (v *countingView) pass(d time.Duration, least, most int) {
	v.t.Helper()
	before := v.count()
	time.Sleep(d)
	synctest.Wait()
	if n := v.count() - before; n < least || n > most {
		v.t.Errorf("the registry was read %d times in %v; want %d to %d", n, d, least, most)
	}
}

func TestViewReadsOnlyAfterReports(t *testing.T) {
	inBubble(t, func(v *countingView) {
		v.pass(8*viewInterval, 0, 0)
		v.wakeups <- struct{}{}
		v.pass(time.Millisecond, 1, 1)
		v.pass(8*viewInterval, 0, 0)
	})
}

func TestViewReadsAgainIfAReportIsLost(t *testing.T) {
	inBubble(t, func(v *countingView) {
		v.set(nil, member(0), member(1)) // and no report
		v.pass(12*viewInterval, 1, 1)
		if members, _ := v.view.members(); len(members) != 2 {
			t.Errorf("the view has %d members; want 2", len(members))
		}
		v.pass(120*viewInterval, 10, 14)
	})
}

// Two nodes that read at the same time do not keep doing so.
func TestViewsSpreadTheirRereads(t *testing.T) {
	v := newView(nil, viewInterval, clocks.System(), slog.New(slog.DiscardHandler))
	v.followReports(nil)
	periods := map[time.Duration]bool{}
	for range 10 {
		periods[v.period()] = true
	}
	if len(periods) < 2 {
		t.Errorf("all periods are the same: %v", periods)
	}
}

func TestViewPollsWhileLoadsAreWatched(t *testing.T) {
	inBubble(t, func(v *countingView) {
		v.pass(viewInterval, 0, 0) // it waits longer than an interval
		first, second := v.poll(), v.poll()
		v.pass(time.Millisecond, 1, 1)
		v.pass(10*viewInterval, 10, 12)
		first()
		v.pass(10*viewInterval, 10, 11)
		second()
		v.pass(viewInterval, 0, 1)
		v.pass(8*viewInterval, 0, 0)
	})
}

// A silent node that is not marked dead causes no report.
func TestViewPollsWhileANodeIsSilent(t *testing.T) {
	inBubble(t, func(v *countingView) {
		silent := member(0)
		silent.SilentFor = silent.Lease + time.Second
		v.set(nil, silent)
		v.wakeups <- struct{}{}
		v.pass(10*viewInterval, 10, 12)
		if silence := v.longestSilence(); silence != silent.SilentFor {
			t.Errorf("the longest silence is %v; want %v", silence, silent.SilentFor)
		}
		v.set(nil, member(0))
		v.pass(viewInterval, 1, 1)
		v.pass(8*viewInterval, 0, 0)
	})
}

func TestViewReadsAgainAfterAFailure(t *testing.T) {
	inBubble(t, func(v *countingView) {
		v.set(errors.New("the connection was reset"))
		v.wakeups <- struct{}{}
		v.pass(3*viewInterval, 3, 4)
		v.set(nil, member(0))
		v.pass(viewInterval, 1, 1)
		v.pass(8*viewInterval, 0, 0)
	})
}

func TestViewIsAsRecentAsRequested(t *testing.T) {
	inBubble(t, func(v *countingView) {
		recent := func(age time.Duration, reads int, want error) {
			t.Helper()
			before := v.count()
			members, err := v.notOlder(t.Context(), age)
			if v.count()-before != reads || !errors.Is(err, want) || len(members) != 1 {
				t.Errorf("at most %v old: %d reads, %d members and error %v; want %d reads and error %v",
					age, v.count()-before, len(members), err, reads, want)
			}
		}
		time.Sleep(viewInterval)
		recent(viewInterval, 0, nil)
		recent(viewInterval-1, 1, nil)
		recent(0, 0, nil)
		time.Sleep(viewInterval)
		v.set(tenure.ErrSessionLost)
		recent(0, 1, tenure.ErrSessionLost)
	})
}

// Of two reads at the same time, the one that began later counts, whichever ends
// first.
func TestViewIgnoresOvertakenReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		results := make(chan chan []tenure.Member, 2)
		ask := func(context.Context) ([]tenure.Member, error) {
			result := make(chan []tenure.Member)
			results <- result
			return <-result, nil
		}
		v := newView(ask, viewInterval, clocks.System(), slog.New(slog.DiscardHandler))
		ended := make(chan error, 2)
		read := func() { ended <- v.read(t.Context()) }
		go read() // ends with its result
		early := <-results
		time.Sleep(time.Millisecond)
		go read()
		late := <-results
		late <- []tenure.Member{member(0), member(1)}
		first := <-ended
		early <- []tenure.Member{member(0)}
		if err := errors.Join(first, <-ended); err != nil {
			t.Fatal(err)
		}
		if members, _ := v.members(); len(members) != 2 {
			t.Errorf("the view has %d members; want the 2 of the later read", len(members))
		}
	})
}

// A member reads all rows when it joins, and not once more when it begins to follow.
func TestViewReadsNewRowsFirstAfterRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, refreshed := 0, 0
		v := newView(func(context.Context) ([]tenure.Member, error) {
			all++
			return []tenure.Member{member(0)}, nil
		}, viewInterval, clocks.System(), slog.New(slog.DiscardHandler))
		v.followReports(func(context.Context) ([]tenure.Member, error) {
			refreshed++
			return []tenure.Member{member(0), member(1)}, nil
		})
		if err := v.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		finished := make(chan struct{})
		go func() { // ends with the context
			defer close(finished)
			v.follow(ctx, nil)
		}()
		synctest.Wait()
		if members, _ := v.members(); all != 1 || refreshed != 1 || len(members) != 2 {
			t.Errorf("%d reads of all rows and %d of new ones, %d members; want 1, 1 and 2", all, refreshed, len(members))
		}
		cancel()
		<-finished
	})
}

// After a report the view refreshes. It reads all rows after the first time, after a
// failure, and when they are due, however often reports arrive.
func TestViewRefreshesAfterReports(t *testing.T) {
	inBubble(t, func(v *countingView) {
		refreshed, failing := 0, false
		v.view.mu.Lock()
		v.view.refresh = func(context.Context) ([]tenure.Member, error) {
			if refreshed++; failing {
				return nil, errors.New("the connection was reset")
			}
			return []tenure.Member{member(0), member(1)}, nil
		}
		v.view.mu.Unlock()
		v.wakeups <- struct{}{}
		v.pass(2*viewPause, 0, 0)
		members, _ := v.view.members()
		if refreshed != 1 || len(members) != 2 {
			t.Errorf("after a report: %d times refreshed, %d members; want 1 and 2", refreshed, len(members))
		}
		if _, err := v.notOlder(t.Context(), 0); err != nil || v.count() != 2 {
			t.Errorf("a refresh counts as a read of all rows: %d reads, error %v", v.count(), err)
		}
		failing = true
		v.wakeups <- struct{}{}
		v.pass(viewInterval, 1, 1) // after the failure
		failing = false
		v.view.mu.Lock()
		v.view.reread = 2 * viewInterval // Set by hand: a setting, so that rereads are due in the loop below.
		v.view.mu.Unlock()
		before := v.count()
		for begun := time.Now(); time.Since(begun) < 5*viewInterval; {
			v.wakeups <- struct{}{} // there is always one
		}
		if n := v.count() - before; n < 2 || n > 4 {
			t.Errorf("all rows were read %d times in %v; want 2 to 4 times", n, 5*viewInterval)
		}
	})
}
