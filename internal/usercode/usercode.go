// Package usercode calls functions of the library's user.
package usercode

import (
	"errors"
	"runtime/debug"
)

// ErrExited is the error of [Call] for a function that ended its goroutine.
var ErrExited = errors.New("it ended its goroutine with runtime.Goexit")

// ErrLeaveRun is the error of a schedule's job in a stopping term if the next leader should
// decide about the run, as after an interruption.
var ErrLeaveRun = errors.New("the run is left to the next leader")

// Call calls fn on its own goroutine and waits for it: runtime.Goexit would end the
// goroutine of the caller without a trace. If fn panics or calls Goexit, Call returns the
// reason, and after a panic the stack.
func Call(fn func()) (reason any, stack []byte) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() {
			if panicked := recover(); panicked != nil {
				reason, stack = panicked, debug.Stack()
			}
		}()
		reason = ErrExited
		fn()
		reason = nil
	}()
	<-ended
	return reason, stack
}
