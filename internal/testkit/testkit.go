// Package testkit has what the tests of every package need, whatever they test: one way
// to wait, and loggers, nodes and functions that end with a test. It imports no package
// of the product, so that the tests of each can use it.
package testkit

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// Patience is how long a test waits for something that must happen soon.
const Patience = 30 * time.Second

// pace is the pause between two looks.
const pace = 5 * time.Millisecond

// Await waits until a condition holds, for [Patience] at most.
func Await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	AwaitWithin(t, Patience, what, holds)
}

// AwaitWithin is [Await] with another limit.
func AwaitWithin(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	if !Within(limit, holds) {
		t.Fatalf("%s: not within %v", what, limit)
	}
}

// AwaitNil waits until check returns nil. The test fails with the last error of check if
// it is not nil within the limit.
func AwaitNil(t testing.TB, limit time.Duration, check func() error) {
	t.Helper()
	if err := Until(context.Background(), limit, pace, check); err != nil {
		t.Fatal(err)
	}
}

var errNotYet = errors.New("not yet")

// Within waits until a condition holds, and reports whether it did within a limit.
func Within(limit time.Duration, holds func() bool) bool {
	return Until(context.Background(), limit, pace, func() error {
		if holds() {
			return nil
		}
		return errNotYet
	}) == nil
}

// Until calls check once every pace until it returns nil. If it still fails after limit,
// the error is its last one.
func Until(ctx context.Context, limit, pace time.Duration, check func() error) error {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for deadline := time.Now().Add(limit); ; {
		err := check()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %v: %w", limit, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Receive returns the next value of a channel, or the zero value if the channel is closed.
// If neither happens within a limit, the test fails with otherwise, such as "no run began".
func Receive[T any](t testing.TB, from <-chan T, limit time.Duration, otherwise string) T {
	t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case value := <-from:
		return value
	case <-timer.C:
		t.Fatalf("%s within %v", otherwise, limit)
		panic("unreachable")
	}
}
