package cron

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/lead"
	"github.com/exactly-one/tenure/cmd/tenure/internal/tail"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/program/config"
	"github.com/exactly-one/tenure/internal/program/guardian"
	"github.com/exactly-one/tenure/internal/program/settings"
	"github.com/exactly-one/tenure/internal/usercode"
)

// maxErrors is how many bytes of a command's errors are stored with its run.
const maxErrors = 1500

// scheduledCommands runs the commands of schedules on this node.
type scheduledCommands struct {
	lead.Timing

	stopTimeout time.Duration // of the node
	environment []string
	output      io.Writer    // receives the standard output of the commands
	errors      io.Writer    // receives their standard error
	node        *tenure.Node // set before the first run; its log does not block
	running     atomic.Int32 // commands that have started and not ended
}

// schedules converts the tables of a file to schedules. An error names a missing command.
func (c *scheduledCommands) schedules(tables []config.CommandSchedule) ([]cron.Schedule, error) {
	var all []cron.Schedule
	for _, table := range tables {
		path, err := lead.FindCommand(table.Command[0])
		if err != nil {
			return nil, fmt.Errorf("the schedule %s: %w", table.Name, err)
		}
		one := scheduledCommand{c, path, table.Command, table.Policy, table.RetryExitCodes}
		schedule := table.Schedule
		schedule.Job = one.run
		all = append(all, schedule)
	}
	return all, nil
}

// scheduledCommand is one command as a job.
type scheduledCommand struct {
	*scheduledCommands

	path       string
	args       []string
	policy     cron.Policy
	retryCodes []int
}

// run runs the command as a job. It returns when none of its processes is
// running.
func (c scheduledCommand) run(ctx context.Context, run cron.Run) error {
	term := newRunTerm(ctx, run.Term, c.stopTimeout-c.Grace)
	defer term.leave()
	log := c.node.Logger().With("schedule", run.Schedule, "run", run.ID, "attempt", run.Attempt, "term", run.Term.Number(), "command", filepath.Base(c.path))
	pause := lead.RestartPause{}
	for c.AwaitTrust(term) {
		began := time.Now()
		end, words, err := c.once(term, run, log)
		pause.Ran(time.Since(began))
		over := lead.Ending(term)
		switch {
		case err != nil && over:
			return term.cutOff(words)
		case err != nil && pause.Restarts() < lead.DefaultRestarts: // no process of it has run, so every policy allows another start
			log.Error("the command could not be run", "error", err)
			lead.Sleep(term, pause.Next())
			continue
		case err != nil:
			return c.giveUp(term, log, err)
		case !end.Stopped:
			return c.ended(log, end.Code, words)
		case over:
			return term.cutOff(words)
		case c.policy != cron.AtLeastOnce:
			return failure(cutOffText, words)
		case end.GuardianLost && pause.Restarts() >= lead.DefaultRestarts:
			return c.giveUp(term, log, failure(cutOffText, words))
		}
		log.Warn(cutOffText + "; restarting it")
		wait := lead.ShortestPause
		if end.GuardianLost {
			wait = pause.Next()
		}
		lead.Sleep(term, wait)
	}
	return term.cutOff("")
}

// ended returns the result of a command that has ended on its own.
func (c scheduledCommand) ended(log *slog.Logger, code int, words string) error {
	if code == 0 {
		log.Info("the command has ended", "exit_code", 0)
		return nil
	}
	log.Warn("the command has ended", "exit_code", code)
	err := failure(fmt.Sprintf("exit code %d", code), words)
	if slices.Contains(c.retryCodes, code) {
		return cron.Retry(err)
	}
	return err
}

// giveUp ends a run after too many failures in a row: its command could not be started,
// or lost its guardian. If no other command of this node runs, another node may do
// better: the node resigns. The next leader repeats the run if its policy allows a
// repetition.
func (c scheduledCommand) giveUp(term *runTerm, log *slog.Logger, err error) error {
	if c.running.Load() > 0 {
		return err
	}
	log.Error("a command ended or could not be run too often in a row: resigning", "times", lead.DefaultRestarts+1, "error", err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // the role is released when this run has returned
	_ = term.Resign(ctx)
	if c.policy == cron.AtLeastOnce {
		return fmt.Errorf("%w: %w", usercode.ErrLeaveRun, err)
	}
	return err
}

const cutOffText = "the command was ended while the term is valid: trust in it was about to end, or the guardian was killed"

// failure returns an error with the last output of a command.
func failure(what, words string) error {
	if words == "" {
		return fmt.Errorf("%s", what)
	}
	return fmt.Errorf("%s: %s", what, words)
}

// once runs the command once and returns the end of its standard error. The end of
// both its outputs is stored with the run.
func (c scheduledCommand) once(term *runTerm, run cron.Run, log *slog.Logger) (guardian.End, string, error) {
	words, err := tail.Start(io.MultiWriter(run.Output(), c.errors), maxErrors)
	if err != nil {
		return guardian.End{}, "", err
	}
	output, err := tail.Start(io.MultiWriter(run.Output(), c.output), 0)
	if err != nil {
		_, _ = words.Close()
		return guardian.End{}, "", err
	}
	started := false
	end, err := guardian.Run(term, guardian.Command{
		Path: c.path, Args: c.args, Env: c.environmentOf(run), Stdout: output.File(), Stderr: words.File(),
		Grace: c.Grace, Lead: c.Lead, Refresh: c.Refresh,
		StopTimeout: func() time.Duration { return c.Grace }, // runTerm has waited for the rest of it
		StopSignal:  func() syscall.Signal { return syscall.SIGTERM },
		Started: func(pid int) {
			started = true
			c.running.Add(1)
			log.Info("the command has started", "pid", pid)
		},
		Logger: log,
	})
	if started {
		c.running.Add(-1)
	}
	last, closing := words.Close()
	_, closingOutput := output.Close()
	if err := errors.Join(closing, closingOutput); err != nil {
		log.Warn("the recorded output of the command may be incomplete", "error", err)
	}
	return end, last, err
}

// environmentOf returns the environment of a command for a run.
func (c scheduledCommand) environmentOf(run cron.Run) []string {
	environment := append(lead.TermEnvironment(c.environment, c.node, run.Term),
		settings.ScheduleVariable+"="+run.Schedule,
		settings.ScheduledForVariable+"="+run.ScheduledFor.Format(time.RFC3339Nano),
		settings.AttemptVariable+"="+strconv.Itoa(run.Attempt),
		settings.RunVariable+"="+strconv.FormatInt(run.ID, 10))
	if run.RequestedBy != "" {
		environment = append(environment, settings.RequestedByVariable+"="+run.RequestedBy)
	}
	return environment
}
