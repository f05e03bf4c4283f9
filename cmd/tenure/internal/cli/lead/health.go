package lead

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
)

// The default time between two health checks, how long a check may take at most, and
// after how many failures in a row a command is unhealthy.
const (
	defaultHealthEvery = 10 * time.Second
	longestHealthCheck = 10 * time.Second
	UnhealthyAfter     = 3
)

// Health is how the health of a command is checked.
type Health struct {
	Path    string        // of the shell; empty if nothing is checked
	Args    []string      // including the zeroth
	Every   time.Duration // between two checks
	Timeout time.Duration // of one check
}

// healthFlags are the flags for health checks.
type healthFlags struct {
	command string
	every   flagvalue.Duration
}

func (f *healthFlags) register(flags *pflag.FlagSet) {
	f.every.Value = defaultHealthEvery
	flags.StringVar(&f.command, "health-command", "", "shell `command` that checks the health of the command while it runs; after three failures in a row the node resigns")
	flags.Var(&f.every, "health-every", "time between runs of the health command; each run may take that long, but at most 10s")
}

func (f *healthFlags) plan(flags *pflag.FlagSet) (Health, error) {
	if f.command == "" {
		if flags.Changed("health-every") {
			return Health{}, console.Usage("--health-every requires --health-command")
		}
		return Health{}, nil
	}
	path, err := FindCommand("sh")
	return Health{
		Path: path, Args: []string{"sh", "-c", f.command},
		Every: f.every.Value, Timeout: min(f.every.Value, longestHealthCheck),
	}, err
}
