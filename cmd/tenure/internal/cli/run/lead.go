package run

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/lead"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/service"
	"github.com/exactly-one/tenure/cmd/tenure/internal/guardian"
)

// leading runs a command in every term of a role.
type leading struct {
	plan        lead.Plan
	role        tenure.Role
	node        *tenure.Node
	log         *slog.Logger
	environment []string
	stdin       *os.File
	server      *service.HTTPServer
	signals     <-chan os.Signal
	ctx         context.Context // ends when this program is asked to end
	result      error           // what this program ends with, if not because it was asked to
}

// lead runs the command in one term. It returns when none of its processes
// lives, so that the role is never released before (Invariant 4).
func (l *leading) lead(ctx context.Context, term *tenure.Term) error {
	log := l.log.With("role", l.role.Name(), "term", term.Number(), "command", filepath.Base(l.plan.Path))
	pause := lead.RestartPause{}
	for l.plan.AwaitTrust(term) {
		l.dropSignals()
		start := time.Now()
		end, err := guardian.Run(term, l.guarded(term, log))
		pause.Ran(time.Since(start))
		over := lead.Ending(term)
		switch {
		case err != nil && !over:
			log.Error("the command could not be run", "error", err)
			end.Code = console.ExitNotExecutable
		case end.Stopped && !over:
			log.Warn("the command was ended while the term stands: trust in it was about to end, or the guardian was killed; it is started again")
			lead.Sleep(term, lead.ShortestPause)
			continue
		case over:
			log.Info("the command has ended with the term", "exit_code", end.Code)
			return l.interrupted(ctx)
		default:
			log.Info("the command has ended", "exit_code", end.Code)
		}
		if l.plan.Once || !l.plan.Restart.Again(end.Code) {
			l.result = console.ExitWith(end.Code, err)
			return tenure.Done
		}
		wait := pause.Next()
		log.Info("the command is started again", "in", wait)
		if !lead.Sleep(term, wait) {
			break
		}
	}
	return l.interrupted(ctx)
}

// interrupted is the result of a term that ended before the command did.
func (l *leading) interrupted(ctx context.Context) error {
	if !l.plan.Once || l.ctx.Err() != nil {
		return nil
	}
	cause := context.Cause(ctx)
	if cause == nil {
		cause = tenure.ErrSteppedDown
	}
	l.result = console.NotAcquired("the term ended before the command did: %w", cause)
	return tenure.Done
}

// guarded is the command as it runs in a term.
func (l *leading) guarded(term *tenure.Term, log *slog.Logger) guardian.Command {
	return guardian.Command{
		Path: l.plan.Path, Args: l.plan.Args, Env: lead.TermEnvironment(l.environment, l.node, term), Stdin: l.stdin,
		Grace: l.plan.Grace, Lead: l.plan.Lead, Refresh: l.plan.Refresh,
		StopSignal: l.stopSignal, Signals: l.signals, Logger: log,
		Started: func(pid int) { log.Info("the command has started", "pid", pid) },
	}
}

// dropSignals forgets the signals that came while there was no command.
func (l *leading) dropSignals() {
	for {
		select {
		case received := <-l.signals:
			l.log.Info("a signal came while no command ran", "signal", received.String())
		default:
			return
		}
	}
}
