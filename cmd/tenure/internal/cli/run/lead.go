package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/lead"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/guardian"
	"github.com/exactly-one/tenure/internal/program/service"
)

// commandRunner runs a command in every term of a role or of a slot.
type commandRunner struct {
	plan        lead.Plan
	role        tenure.Role
	node        *tenure.Node
	log         *slog.Logger
	environment []string
	stdin       *os.File
	stopTimeout time.Duration // of the node
	server      *service.HTTPServer
	signals     <-chan os.Signal
	ctx         context.Context // ends when this program is asked to end
	result      *result         // this program's, unless it was asked to end
}

// result is the result of this program. The first one counts: with slots, several
// commands may run.
type result struct {
	mu   sync.Mutex
	err  error
	lost error // why the last term was lost, nil if it was not
}

func (r *result) set(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

func (r *result) get() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// began records the begin of a term: an earlier loss no longer counts.
func (r *result) began() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost = nil
}

// lose records the loss of the last term.
func (r *result) lose(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost = err
}

// getLoss returns why the last term was lost, nil if it was not.
func (r *result) getLoss() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// lead runs the command in one term. It returns when none of its processes is running:
// the role is not released before (Invariant 4: work ends first).
func (l *commandRunner) lead(ctx context.Context, term *tenure.Term) error {
	log := l.log.With("role", term.Role().Name(), "term", term.Number(), "command", filepath.Base(l.plan.Path))
	l.result.began()
	defer l.noteLoss(ctx, term)
	pause := lead.RestartPause{}
	for l.plan.AwaitTrust(term) {
		l.dropSignals()
		start := time.Now()
		end, err := l.runOnce(term, log)
		pause.Ran(time.Since(start))
		over := lead.Ending(term)
		again := false // whatever --restart is
		switch {
		case errors.Is(err, errUnhealthy) && !over:
			return l.unhealthy(err)
		case err != nil && !over:
			log.Error("the command could not be run", "error", err)
			end.Code = console.ExitNotExecutable
		case end.Stopped && !over:
			if l.plan.Once { // it may have begun its work
				l.result.set(console.NotAcquired(cutOffText))
				return tenure.Done
			}
			log.Warn(cutOffText + "; restarting it")
			if !end.GuardianLost { // late heartbeats are no fault of this node
				lead.Sleep(term, lead.ShortestPause)
				continue
			}
			again = true
		case l.endedWith(over, end, err):
			log.Info("the command has ended with the term", "exit_code", end.Code)
			return l.interrupted(ctx)
		default:
			log.Info("the command has ended", "exit_code", end.Code)
		}
		if !again && (l.plan.Once || !l.plan.Restart.Again(end.Code)) {
			l.result.set(console.ExitWith(end.Code, err))
			return l.finished(end.Code, err)
		}
		if restarts := pause.Restarts(); restarts >= l.plan.MaxRestarts {
			return giveUp(restarts+1, end, err)
		}
		awaitRestart(term, log, pause.Next())
	}
	return l.interrupted(ctx)
}

// finished returns the result of a term after its command ended and is not restarted.
func (l *commandRunner) finished(code int, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("%w: the command could not be run: %w", tenure.Done, err)
	case code != 0:
		return fmt.Errorf("%w: the command ended with exit code %d", tenure.Done, code)
	case l.plan.Once:
		return completed{l.plan.NextWithin}
	}
	return tenure.Done
}

// completed is tenure.Done of a successful command without a need for a leader until its
// next start.
type completed struct{ within time.Duration }

func (completed) Error() string               { return "the command is completed" }
func (completed) Is(target error) bool        { return target == tenure.Done }
func (c completed) NextWithin() time.Duration { return c.within }

// awaitRestart pauses before a restart, but not beyond the term.
func awaitRestart(term *tenure.Term, log *slog.Logger, wait time.Duration) {
	log.Info("restarting the command", "in", wait)
	lead.Sleep(term, wait)
}

// giveUp returns the error of a node after its command has ended, or could not be
// started, too often in a row.
func giveUp(times int, end guardian.End, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("the command ended or could not be run %d times in a row, most recently because: %w", times, err)
	case end.GuardianLost:
		return fmt.Errorf("the command ended %d times in a row, most recently because the guardian was killed", times)
	}
	return fmt.Errorf("the command ended %d times in a row, most recently with exit code %d", times, end.Code)
}

// noteLoss records why the term was lost, if it was.
func (l *commandRunner) noteLoss(ctx context.Context, term *tenure.Term) {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, tenure.ErrResigned) {
		l.result.lose(lostRole(term.Role(), cause))
	}
}

const cutOffText = "the command was ended while the term is valid: trust in it was about to end, or the guardian was killed"

// endedWith reports whether a command ended with its term. over says whether the term has
// ended. If the command ended on its own, and the term while the last processes ended,
// its exit code counts. Without --once a signal to this program counts instead.
func (l *commandRunner) endedWith(over bool, end guardian.End, err error) bool {
	return over && (err != nil || end.Stopped || !l.plan.Once && l.ctx.Err() != nil)
}

// runOnce runs the command once, with health checks if there are any.
func (l *commandRunner) runOnce(term *tenure.Term, log *slog.Logger) (guardian.End, error) {
	if l.plan.Health.Path == "" {
		return guardian.Run(term, l.guarded(term, log))
	}
	return runHealthy(term, l.guarded(term, log), l.plan.Health)
}

// unhealthy returns the result of a term whose command was ended because it is unhealthy.
// If no later term may run the command, this program ends.
func (l *commandRunner) unhealthy(err error) error {
	if !l.plan.Once && l.plan.Restart != lead.RestartNever {
		return err
	}
	l.result.set(console.ExitWith(console.ExitNotAcquired, err))
	return tenure.Done
}

// interrupted returns the result of a term with an end before the command's.
func (l *commandRunner) interrupted(ctx context.Context) error {
	if !l.plan.Once || l.ctx.Err() != nil {
		return nil
	}
	cause := context.Cause(ctx)
	if cause == nil {
		cause = tenure.ErrSteppedDown
	}
	l.result.set(console.NotAcquired("the term ended before the command did: %w", cause))
	return tenure.Done
}

// guarded returns the command for a term.
func (l *commandRunner) guarded(term *tenure.Term, log *slog.Logger) guardian.Command {
	return guardian.Command{
		Path: l.plan.Path, Args: l.plan.Args, Env: lead.TermEnvironment(l.environment, l.node, term), Stdin: l.stdin,
		Grace: l.plan.Grace, Lead: l.plan.Lead, Refresh: l.plan.Refresh,
		StopTimeout: func() time.Duration { return l.stopTimeout },
		StopSignal:  l.stopSignal, Signals: l.signals, Logger: log,
		Started: func(pid int) { log.Info("the command has started", "pid", pid) },
	}
}

// dropSignals discards signals from the time without a running command.
func (l *commandRunner) dropSignals() {
	for {
		select {
		case received := <-l.signals:
			l.log.Info("a signal arrived while no command was running", "signal", received.String())
		default:
			return
		}
	}
}
