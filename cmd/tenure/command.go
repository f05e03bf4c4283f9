package main

import (
	"errors"
	"io/fs"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure"
)

// commandFlags are the flags of "tenure run" that concern its command.
type commandFlags struct {
	flags        *pflag.FlagSet
	grace        duration
	restart      restartPolicy
	once         bool
	noLeaderExit string
	passDSN      bool
}

func (f *commandFlags) register(flags *pflag.FlagSet) {
	f.registerCommon(flags)
	f.restart = restartOnFailure
	flags.Var(&f.restart, "restart", "start the command again, within a term, when it has ended by itself: never, on-failure or always")
	flags.BoolVar(&f.once, "once", false, "lead, run the command once, resign, and exit with its code")
	flags.StringVar(&f.noLeaderExit, "no-leader-exit", "", "exit with this code if somebody else leads already, instead of waiting")
}

// registerCommon adds the flags that commands on schedules have, too.
func (f *commandFlags) registerCommon(flags *pflag.FlagSet) {
	f.flags = flags
	f.grace.allowZero = true
	flags.Var(&f.grace, "grace", "how long a command has to end when asked to; default 1s, or less with a short lease")
	flags.BoolVar(&f.passDSN, "pass-dsn", false, "give the command the connection string, in TENURE_DSN")
}

// unused refuses the flags where there is no command.
func (f *commandFlags) unused() error {
	for _, name := range []string{"grace", "restart", "once", "no-leader-exit", "pass-dsn"} {
		if f.flags.Changed(name) {
			return usage("--%s is for a command: tenure run --role NAME --%s ... -- COMMAND", name, name)
		}
	}
	return nil
}

// timing are the times that a command keeps.
type timing struct {
	grace   time.Duration // from the request to end until the kill
	lead    time.Duration // from the kill until trust ends
	refresh time.Duration // between heartbeats
}

// plan is what the flags say about a command, checked.
type plan struct {
	timing

	path         string // of the command's file
	args         []string
	restart      restartPolicy
	once         bool
	noLeaderExit *int
}

// The bounds of what is left of a term when the command is killed, and the
// default time that it has to end before that.
const (
	longestLead  = 100 * time.Millisecond
	defaultGrace = time.Second
)

// plan checks the flags and the command against the configuration of the node,
// whose lease must be set.
func (f *commandFlags) plan(config tenure.Config, args []string) (plan, error) {
	times, err := f.timing(config)
	p := plan{timing: times, args: args, restart: f.restart, once: f.once}
	switch {
	case err != nil:
		return p, err
	case p.once && f.flags.Changed("restart") && p.restart != restartNever:
		return p, usage("--once and --restart %s contradict each other", p.restart)
	}
	if f.flags.Changed("no-leader-exit") {
		code, err := strconv.ParseUint(f.noLeaderExit, 10, 8)
		if err != nil {
			return p, usage("--no-leader-exit is %q; it must be an exit code from 0 to 255", f.noLeaderExit)
		}
		number := int(code)
		p.noLeaderExit = &number
	}
	p.path, err = findCommand(args[0])
	return p, err
}

// timing are the times that commands keep under a node, whose lease must be set.
func (f *commandFlags) timing(config tenure.Config) (timing, error) {
	p := timing{refresh: config.RefreshInterval}
	margin := config.Margin
	if p.refresh == 0 {
		p.refresh = config.Lease / 3
	}
	if margin == 0 {
		margin = config.Lease / 10
	}
	p.lead = min(longestLead, config.Lease/20)
	most := max(0, config.Lease-margin-2*p.refresh)
	p.grace = min(defaultGrace, most)
	if f.flags.Changed("grace") {
		p.grace = f.grace.value
	}
	switch {
	case p.grace > most:
		return p, usage("--grace is %v; with a lease of %v, a margin of %v and heartbeats every %v it can be at most %v: lease - margin - 2 x refresh",
			p.grace, config.Lease, margin, p.refresh, most)
	case config.StopTimeout > 0 && p.grace > config.StopTimeout:
		return p, usage("--grace (%v) is longer than --stop-timeout (%v)", p.grace, config.StopTimeout)
	}
	return p, nil
}

// stopTimeout is that of the node: time enough for a command to end.
func (t timing) stopTimeout(config tenure.Config) time.Duration {
	if config.StopTimeout > 0 {
		return config.StopTimeout
	}
	const usual = 10 * time.Second
	return max(usual, t.grace+time.Second)
}

// findCommand returns the file of a command, found as a shell finds it.
func findCommand(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EISDIR):
		return "", exitWith(exitNotExecutable, commandError{name, "is not executable"})
	case errors.Is(err, exec.ErrDot):
		return "", exitWith(exitNotFound, commandError{name, "is only found in the present directory: write ./" + name})
	}
	return "", exitWith(exitNotFound, commandError{name, "does not exist"})
}

// commandError says what is wrong with a command.
type commandError struct{ name, fault string }

func (e commandError) Error() string { return "the command " + strconv.Quote(e.name) + " " + e.fault }
