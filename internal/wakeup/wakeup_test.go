package wakeup

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure/clocks"
)

func TestSendNeverBlocks(t *testing.T) {
	c := make(chan struct{}, 1)
	Send(c)
	Send(c)
	if len(c) != 1 {
		t.Errorf("%d wake-ups wait; want 1", len(c))
	}
}

func TestClosedReportsTheEndOfAChannel(t *testing.T) {
	c := make(chan struct{})
	if Closed(c) || Closed(nil) {
		t.Error("an open channel is reported as closed")
	}
	if close(c); !Closed(c) {
		t.Error("a closed channel is reported as open")
	}
}

func TestAwaitEndsAtTheFirstReason(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(cancel func(), c chan struct{})
		woken   bool
		after   time.Duration
	}{
		"the time has passed":   {func(func(), chan struct{}) {}, false, time.Hour},
		"the context has ended": {func(cancel func(), _ chan struct{}) { cancel() }, false, 0},
		"a wake-up waits":       {func(_ func(), c chan struct{}) { Send(c) }, true, 0},
		"the channel is closed": {func(_ func(), c chan struct{}) { close(c) }, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				wake := make(chan struct{}, 1)
				c.prepare(cancel, wake)
				begun := time.Now()
				if woken := Await(ctx, time.Hour, wake); woken != c.woken {
					t.Errorf("woken is %v; want %v", woken, c.woken)
				}
				if took := time.Since(begun); took != c.after {
					t.Errorf("it took %v; want %v", took, c.after)
				}
			})
		})
	}
}

func TestSleepReportsTheEndOfTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	if !Sleep(ctx, 0) {
		t.Error("the context has not ended; want true")
	}
	cancel()
	if Sleep(ctx, time.Hour) {
		t.Error("the context has ended; want false")
	}
}

func TestListenBeginsAgainAfterEachFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		begun, calls, woken, failures := time.Now(), 0, 0, 0
		failure := errors.New("the connection is lost")
		listen := func(ctx context.Context, wake func()) error {
			wake()
			if calls++; calls < 3 {
				return failure
			}
			cancel()
			return ctx.Err()
		}
		Listen(ctx, clocks.System(), time.Minute, listen, func() { woken++ }, func(err error) {
			if failures++; !errors.Is(err, failure) {
				t.Errorf("the error is %v; want %v", err, failure)
			}
		})
		if calls != 3 || woken != 3 || failures != 2 {
			t.Errorf("%d calls, %d wake-ups, %d failures; want 3, 3, 2", calls, woken, failures)
		}
		if took := time.Since(begun); took != 2*time.Minute {
			t.Errorf("it took %v; want a minute after each failure", took)
		}
	})
}
