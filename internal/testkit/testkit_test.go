package testkit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

func TestUntilReturnsTheLastErrorAtTheLimit(t *testing.T) {
	failure := errors.New("not yet")
	if err := Until(t.Context(), time.Millisecond, time.Millisecond, func() error { return failure }); !errors.Is(err, failure) {
		t.Errorf("got %v, want %v", err, failure)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Until(ctx, time.Hour, time.Hour, func() error { return failure }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// A condition that holds after some looks ends the wait. One that never holds ends it at the
// limit, and the last look follows the limit.
func TestWaitsEndWithTheConditionOrTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks, began := 0, time.Now()
		Await(t, "three looks", func() bool { looks++; return looks == 3 })
		if took := time.Since(began); took != 2*pace {
			t.Errorf("three looks took %v, want %v", took, 2*pace)
		}
		began = time.Now()
		if Within(time.Second, func() bool { return time.Since(began) > time.Hour }) {
			t.Error("a condition that did not hold is said to have held")
		}
		if took := time.Since(began); took < time.Second || took > time.Second+pace {
			t.Errorf("the wait took %v, want 1s", took)
		}
		if !Within(0, func() bool { return true }) {
			t.Error("a condition that holds is not looked at")
		}
	})
}

// failing is a test that records its failure.
type failing struct {
	testing.TB
	message string
}

func TestReceiveFailsAtTheLimit(t *testing.T) {
	values := make(chan int, 1)
	values <- 1
	if got := Receive(t, values, time.Hour, "no value came"); got != 1 {
		t.Errorf("got %d, want 1", got)
	}
	synctest.Test(t, func(t *testing.T) {
		f := &failing{TB: t}
		began := time.Now()
		ended := make(chan struct{})
		go func() { // exits at the limit
			defer close(ended)
			Receive(f, make(chan int), time.Second, "no value came")
		}()
		<-ended
		if took := time.Since(began); f.message != "no value came within 1s" || took != time.Second {
			t.Errorf("it failed with %q after %v", f.message, took)
		}
	})
}

func (f *failing) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
