package cron

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// patience is how long a job may take to return after its context has ended
// before that is reported, again and again.
const patience = 5 * time.Second

// mostError is the longest text of an error that a row keeps.
const mostError = 2000

// outcome is how a run ended.
type outcome struct {
	run   Run
	state State
	text  string // of the error
}

// errRunTimeout is why a run's context ended when its Timeout was over. It
// matches context.DeadlineExceeded.
var errRunTimeout = fmt.Errorf("the schedule's timeout is over: %w", context.DeadlineExceeded)

// execute runs a job and says how that ended.
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
	switch {
	case !run.Term.Valid():
		log.Warn("a run outlasted its term: the next leader decides what becomes of it", "took", took, "error", err)
		return outcome{run, Failed, ""} // not recorded
	case panicked:
		return outcome{run, Panicked, clip(err.Error())}
	case err == nil:
		log.Debug("a run succeeded", "took", took)
		return outcome{run, Succeeded, ""}
	case errors.Is(context.Cause(ctx), errRunTimeout):
		log.Error("a run did not end in time", "timeout", s.Timeout, "took", took, "error", err)
		return outcome{run, TimedOut, clip(err.Error())}
	default:
		log.Error("a run failed", "took", took, "error", err)
		return outcome{run, Failed, clip(err.Error())}
	}
}

// call calls a job and makes an error of a panic.
func call(ctx context.Context, job Job, run Run, log *slog.Logger) (panicked bool, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			log.Error("a run panicked", "panic", reason, "stack", string(debug.Stack()))
			panicked, err = true, fmt.Errorf("the job panicked: %v", reason)
		}
	}()
	return false, job(ctx, run)
}

// watch reports a job that goes on although its context has ended: its schedule,
// and the end of the term, wait for it.
func watch(ctx context.Context, returned <-chan struct{}, log *slog.Logger) {
	select {
	case <-returned:
		return
	case <-ctx.Done():
	}
	ended := time.Now()
	for pause := patience; ; pause *= 2 {
		timer := time.NewTimer(pause)
		select {
		case <-returned:
			timer.Stop()
			return
		case <-timer.C:
			log.Error("a job ignores the end of its context", "cause", context.Cause(ctx), "since", time.Since(ended))
		}
	}
}

// clip makes a text fit for a column: short, and in what PostgreSQL takes for
// text.
func clip(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) <= mostError {
		return text
	}
	end := mostError
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
