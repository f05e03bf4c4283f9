package lead

import (
	"cmp"
	"errors"
	"io/fs"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
)

// CommandFlags are the flags of "tenure run" for its command.
type CommandFlags struct {
	flags        *pflag.FlagSet
	grace        flagvalue.Duration
	restart      RestartPolicy
	once         bool
	nextWithin   flagvalue.Duration
	noLeaderExit string
	maxRestarts  flagvalue.Number
	slots        slotFlags
	health       healthFlags
	passDSN      bool
}

// Register adds the flags.
func (f *CommandFlags) Register(flags *pflag.FlagSet) {
	f.RegisterCommon(flags)
	f.restart = RestartOnFailure
	flags.Var(&f.restart, "restart", "restart the command within a term after it ends on its own: never, on-failure or always")
	f.maxRestarts = flagvalue.Number{Value: DefaultRestarts, Most: mostRestarts}
	flags.Var(&f.maxRestarts, "max-restarts", "resign instead of restarting the command more than this many times in a row; a run of a minute resets the count")
	f.slots.register(flags)
	f.health.register(flags)
	flags.BoolVar(&f.once, "once", false, "lead, run the command once, resign, and exit with its code")
	flags.Var(&f.nextWithin, "next-within", "with --once: the role is at rest after exit code 0, and vacant after this time; default no limit")
	flags.StringVar(&f.noLeaderExit, "no-leader-exit", "", "exit with this `code` instead of waiting if another node leads")
}

// RegisterCommon adds the flags in common with commands on schedules.
func (f *CommandFlags) RegisterCommon(flags *pflag.FlagSet) {
	f.flags = flags
	f.grace.AllowZero = true
	flags.Var(&f.grace, "grace", "how long a command may take to end when heartbeats fail or its time is over; default 1s, or less with a short lease")
	flags.BoolVar(&f.passDSN, "pass-dsn", false, "pass the connection string to the command in TENURE_DSN, and keep DATABASE_URL and the variables of libpq in its environment")
}

// Unused rejects the flags if there is no command.
func (f *CommandFlags) Unused() error {
	for _, name := range []string{"grace", "restart", "max-restarts", "slots", "slots-per-node", "health-command", "health-every", "once", "next-within", "no-leader-exit", "pass-dsn"} {
		if f.flags.Changed(name) {
			return console.Usage("--%s requires a command: tenure run --role NAME --%s ... -- COMMAND", name, name)
		}
	}
	return nil
}

// Timing are the times of a command.
type Timing struct {
	Grace   time.Duration // from the request to end to the kill
	Lead    time.Duration // from the kill to the end of trust
	Refresh time.Duration // between heartbeats
}

// Plan is the validated result of the flags for a command.
type Plan struct {
	Timing

	Path         string // of the command's file
	Args         []string
	Restart      RestartPolicy
	MaxRestarts  int
	Slots        Slots
	Health       Health
	Once         bool
	NextWithin   time.Duration // after a completed run; 0 for no limit
	NoLeaderExit *int
}

// The limits for the time between the kill of the command and the end of trust,
// and the default grace.
const (
	longestLead  = 100 * time.Millisecond
	defaultGrace = time.Second
)

// Plan validates the flags and the command with the configuration of the node. Its lease
// must be set.
func (f *CommandFlags) Plan(config tenure.Config, args []string) (Plan, error) {
	times, err := f.Timing(config)
	p := Plan{Timing: times, Args: args, Restart: f.restart, MaxRestarts: f.maxRestarts.Value, Once: f.once, NextWithin: f.nextWithin.Value}
	switch {
	case err != nil:
		return p, err
	case p.Once && f.flags.Changed("restart") && p.Restart != RestartNever:
		return p, console.Usage("--once and --restart %s contradict each other", p.Restart)
	case !p.Once && p.NextWithin > 0:
		return p, console.Usage("--next-within is for --once: without it the role always needs a leader")
	}
	if p.Slots, err = f.slots.plan(f.flags); err != nil {
		return p, err
	}
	if p.Once && p.Slots.PerNode > 1 {
		return p, console.Usage("--once runs one command: use it with --slots-per-node 1")
	}
	if p.Health, err = f.health.plan(f.flags); err != nil {
		return p, err
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

// Timing returns the durations for commands on a node. Its lease must be set.
func (f *CommandFlags) Timing(config tenure.Config) (Timing, error) {
	p := Timing{Refresh: config.RefreshInterval}
	margin := config.Margin
	p.Refresh = cmp.Or(p.Refresh, config.Lease/3)
	margin = cmp.Or(margin, config.Lease/10)
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

// StopTimeout returns the node's stop timeout, long enough for a command to
// end.
func (t Timing) StopTimeout(config tenure.Config) time.Duration {
	if config.StopTimeout > 0 {
		return config.StopTimeout
	}
	const usual = 10 * time.Second
	return max(usual, t.Grace+time.Second)
}

// FindCommand returns the file of a command, searched as a shell does.
func FindCommand(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EISDIR):
		return "", console.ExitWith(console.ExitNotExecutable, commandError{name, "is not executable"})
	case errors.Is(err, exec.ErrDot):
		return "", console.ExitWith(console.ExitNotFound, commandError{name, "is only found in the current directory: write ./" + name})
	}
	return "", console.ExitWith(console.ExitNotFound, commandError{name, "does not exist"})
}

// commandError describes the fault of a command.
type commandError struct{ name, fault string }

func (e commandError) Error() string { return "the command " + strconv.Quote(e.name) + " " + e.fault }
