package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/lead"
	"github.com/exactly-one/tenure/internal/program/guardian"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// errUnhealthy is matched by the error of work with an unhealthy command.
var errUnhealthy = errors.New("the command is unhealthy")

// healthWatch runs the health command beside the command of a term. Each check has a
// separate guardian, so it cannot delay the command's, and ends with the term. To the
// command, healthWatch is its term: it is stopping once the command is unhealthy.
type healthWatch struct {
	guardian.Term
	health   lead.Health
	check    guardian.Command
	log      *slog.Logger
	stopping chan struct{}
	stop     func()          // closes stopping, once
	ctx      context.Context // ends when the term is stopping or the command has ended
	err      error           // why the command is unhealthy

	unhealthy atomic.Bool // the command is ended because of that
}

// Stopping is closed when the term is stopping or the command is unhealthy.
func (h *healthWatch) Stopping() <-chan struct{} { return h.stopping }

// runHealthy runs a command and ends it when it is unhealthy. Then the error matches
// errUnhealthy. It returns when neither the command nor a check is running.
func runHealthy(term guardian.Term, command guardian.Command, health lead.Health) (guardian.End, error) {
	ctx, cancel := context.WithCancel(term.Context())
	defer cancel()
	h := &healthWatch{Term: term, health: health, check: command, log: command.Logger, ctx: ctx, stopping: make(chan struct{})}
	h.stop = sync.OnceFunc(func() { close(h.stopping) })
	h.check.Path, h.check.Args = health.Path, health.Args
	h.check.Stdin, h.check.Stdout, h.check.Signals = nil, os.Stderr, nil
	h.check.Started = func(int) {}
	h.check.StopTimeout = func() time.Duration { return command.Grace }
	graceful := command.StopTimeout
	command.StopTimeout = func() time.Duration { // an unhealthy command is not waited for
		if h.unhealthy.Load() {
			return command.Grace
		}
		return graceful()
	}
	var watching sync.WaitGroup
	watching.Go(func() { // exits with ctx
		select {
		case <-term.Stopping():
			h.stop()
			cancel()
		case <-ctx.Done():
		}
	})
	watching.Go(h.watch) // exits with ctx, or when the command is unhealthy
	end, err := guardian.Run(h, command)
	cancel()
	watching.Wait()
	if err == nil && !end.Stopped { // it had ended on its own when it became unhealthy
		return end, nil
	}
	return end, errors.Join(err, h.err)
}

// watch checks until ctx ends or the command is unhealthy.
func (h *healthWatch) watch() {
	var last error
	for failures := 0; failures < lead.UnhealthyAfter; {
		if !wakeup.Sleep(h.ctx, h.health.Every) {
			return
		}
		failure := h.run()
		switch {
		case h.ctx.Err() != nil:
			return
		case failure == nil:
			failures = 0
			continue
		}
		failures++
		h.log.Warn("the health command failed", "failures", failures, "limit", lead.UnhealthyAfter, "error", failure)
		last = failure
	}
	h.err = fmt.Errorf("%w: the health command failed %d times in a row; the last time, %w", errUnhealthy, lead.UnhealthyAfter, last)
	h.unhealthy.Store(true)
	h.stop()
}

// limitedTerm is a term with a time limit.
type limitedTerm struct {
	guardian.Term
	ctx context.Context
}

func (t limitedTerm) Context() context.Context { return t.ctx }

// run makes one check. It returns why the command failed the check.
func (h *healthWatch) run() error {
	ctx, cancel := context.WithTimeout(h.ctx, h.health.Timeout)
	defer cancel()
	end, err := guardian.Run(limitedTerm{h.Term, ctx}, h.check)
	switch {
	case err != nil:
		return err
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && end.Stopped:
		return fmt.Errorf("it took longer than %v", h.health.Timeout)
	case end.GuardianLost:
		return errors.New("its guardian was killed")
	case end.Stopped: // trust in the term was about to end: the command is ended too
		return nil
	case end.Code != 0:
		return fmt.Errorf("its exit code was %d", end.Code)
	}
	return nil
}
