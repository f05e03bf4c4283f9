package lead

import (
	"errors"
	"io/fs"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/flagvalue"
)

// CommandFlags are the flags of "tenure run" that concern its command.
type CommandFlags struct {
	flags        *pflag.FlagSet
	grace        flagvalue.Duration
	restart      RestartPolicy
	once         bool
	noLeaderExit string
	passDSN      bool
}

// Register adds the flags.
func (f *CommandFlags) Register(flags *pflag.FlagSet) {
	f.RegisterCommon(flags)
	f.restart = RestartOnFailure
	flags.Var(&f.restart, "restart", "start the command again, within a term, when it has ended by itself: never, on-failure or always")
	flags.BoolVar(&f.once, "once", false, "lead, run the command once, resign, and exit with its code")
	flags.StringVar(&f.noLeaderExit, "no-leader-exit", "", "exit with this code if somebody else leads already, instead of waiting")
}

// RegisterCommon adds the flags that commands on schedules have, too.
func (f *CommandFlags) RegisterCommon(flags *pflag.FlagSet) {
	f.flags = flags
	f.grace.AllowZero = true
	flags.Var(&f.grace, "grace", "how long a command has to end when asked to; default 1s, or less with a short lease")
	flags.BoolVar(&f.passDSN, "pass-dsn", false, "give the command the connection string, in TENURE_DSN")
}

// Unused refuses the flags where there is no command.
func (f *CommandFlags) Unused() error {
	for _, name := range []string{"grace", "restart", "once", "no-leader-exit", "pass-dsn"} {
		if f.flags.Changed(name) {
			return console.Usage("--%s is for a command: tenure run --role NAME --%s ... -- COMMAND", name, name)
		}
	}
	return nil
}

// Timing are the times that a command keeps.
type Timing struct {
	Grace   time.Duration // from the request to end until the kill
	Lead    time.Duration // from the kill until trust ends
	Refresh time.Duration // between heartbeats
}

// Plan is what the flags say about a command, checked.
type Plan struct {
	Timing

	Path         string // of the command's file
	Args         []string
	Restart      RestartPolicy
	Once         bool
	NoLeaderExit *int
}

// The bounds of what is left of a term when the command is killed, and the
// default time that it has to end before that.
const (
	longestLead  = 100 * time.Millisecond
	defaultGrace = time.Second
)

// Plan checks the flags and the command against the configuration of the node,
// whose lease must be set.
func (f *CommandFlags) Plan(config tenure.Config, args []string) (Plan, error) {
	times, err := f.Timing(config)
	p := Plan{Timing: times, Args: args, Restart: f.restart, Once: f.once}
	switch {
	case err != nil:
		return p, err
	case p.Once && f.flags.Changed("restart") && p.Restart != RestartNever:
		return p, console.Usage("--once and --restart %s contradict each other", p.Restart)
	}
	if f.flags.Changed("no-leader-exit") {
		code, err := strconv.ParseUint(f.noLeaderExit, 10, 8)
		if err != nil {
			return p, console.Usage("--no-leader-exit is %q; it must be an exit code from 0 to 255", f.noLeaderExit)
		}
		number := int(code)
		p.NoLeaderExit = &number
	}
	p.Path, err = FindCommand(args[0])
	return p, err
}

// Timing are the times that commands keep under a node, whose lease must be set.
func (f *CommandFlags) Timing(config tenure.Config) (Timing, error) {
	p := Timing{Refresh: config.RefreshInterval}
	margin := config.Margin
	if p.Refresh == 0 {
		p.Refresh = config.Lease / 3
	}
	if margin == 0 {
		margin = config.Lease / 10
	}
	p.Lead = min(longestLead, config.Lease/20)
	most := max(0, config.Lease-margin-2*p.Refresh)
	p.Grace = min(defaultGrace, most)
	if f.flags.Changed("grace") {
		p.Grace = f.grace.Value
	}
	switch {
	case p.Grace > most:
		return p, console.Usage("--grace is %v; with a lease of %v, a margin of %v and heartbeats every %v it can be at most %v: lease - margin - 2 x refresh",
			p.Grace, config.Lease, margin, p.Refresh, most)
	case config.StopTimeout > 0 && p.Grace > config.StopTimeout:
		return p, console.Usage("--grace (%v) is longer than --stop-timeout (%v)", p.Grace, config.StopTimeout)
	}
	return p, nil
}

// StopTimeout is that of the node: time enough for a command to end.
func (t Timing) StopTimeout(config tenure.Config) time.Duration {
	if config.StopTimeout > 0 {
		return config.StopTimeout
	}
	const usual = 10 * time.Second
	return max(usual, t.Grace+time.Second)
}

// FindCommand returns the file of a command, found as a shell finds it.
func FindCommand(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EISDIR):
		return "", console.ExitWith(console.ExitNotExecutable, commandError{name, "is not executable"})
	case errors.Is(err, exec.ErrDot):
		return "", console.ExitWith(console.ExitNotFound, commandError{name, "is only found in the present directory: write ./" + name})
	}
	return "", console.ExitWith(console.ExitNotFound, commandError{name, "does not exist"})
}

// commandError says what is wrong with a command.
type commandError struct{ name, fault string }

func (e commandError) Error() string { return "the command " + strconv.Quote(e.name) + " " + e.fault }
