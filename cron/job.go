package cron

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/exactly-one/tenure/internal/printable"
	"github.com/exactly-one/tenure/internal/usercode"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// reportInterval is how long a job may run after the end of its context before the first
// report, and the time between reports.
const reportInterval = 5 * time.Second

// maxError is the maximum length of an error text in a row.
const maxError = 2000

// outcome is the result of a run.
type outcome struct {
	run    Run
	state  State         // Waiting for a retry; Running if the next leader decides
	text   string        // the error
	output string        // written by the job
	delay  time.Duration // before the retry
}

// errRunTimeout is the cause of a run's context when its Timeout has passed. It
// matches context.DeadlineExceeded.
var errRunTimeout = fmt.Errorf("the schedule's timeout has passed: %w", context.DeadlineExceeded)

// execute runs a job and returns the outcome.
func execute(ctx context.Context, s Schedule, run Run, log *slog.Logger) outcome {
	if s.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.Timeout, errRunTimeout)
		defer cancel()
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	returned := make(chan struct{})
	defer close(returned)
	watching.Go(func() { watch(ctx, returned, log) })

	begun := time.Now()
	panicked, err := call(ctx, s.Job, run, log)
	took := time.Since(begun)
	end := outcome{run: run, state: Failed, output: run.output.text()}
	if err != nil {
		end.text = printable.Clip(err.Error(), maxError)
	}
	switch {
	case !run.Term.Valid():
		log.Warn("a run outlasted its term: the next leader records its end", "took", took, "error", err)
		return end // not recorded
	case panicked:
		end.state = Panicked
		return end
	case err == nil:
		log.Debug("a run succeeded", "took", took)
		end.state = Succeeded
		return end
	}
	if wakeup.Closed(run.Term.Stopping()) && errors.Is(err, usercode.ErrLeaveRun) {
		log.Warn("a run is left to the next leader", "took", took, "error", err)
		end.state = Running
		return end
	}
	if delay, again := s.retryAfter(run.Attempt, run.age+took, err, log); again {
		log.Warn("a run failed and will be tried again", "took", took, "delay", delay, "error", err)
		end.state, end.delay = Waiting, delay
		return end
	}
	if errors.Is(context.Cause(ctx), errRunTimeout) {
		log.Error("a run timed out", "timeout", s.Timeout, "took", took, "error", err)
		end.state = TimedOut
		return end
	}
	log.Error("a run failed", "took", took, "error", err)
	return end
}

// call calls a job and converts a panic, or the end of its goroutine, to an error.
func call(ctx context.Context, job Job, run Run, log *slog.Logger) (panicked bool, err error) {
	reason, stack := usercode.Call(func() {
		if err = job(ctx, run); err != nil {
			_ = err.Error() // it is code of the user too, and is called again to record the failure
		}
	})
	if reason != nil {
		log.Error("a run panicked", "panic", reason, "stack", string(stack))
		return true, fmt.Errorf("the job panicked: %v", reason)
	}
	return false, err
}

// watch reports a job still running after the end of its context. Its schedule and the end
// of the term wait for it.
func watch(ctx context.Context, returned <-chan struct{}, log *slog.Logger) {
	select {
	case <-returned:
		return
	case <-ctx.Done():
	}
	ended := time.Now()
	for pause := reportInterval; ; pause *= 2 {
		select {
		case <-returned:
			return
		case <-time.After(pause):
			log.Error("a job still runs after its context has ended", "cause", context.Cause(ctx), "since", time.Since(ended))
		}
	}
}
