package lead

import (
	"errors"
	"time"
)

// DefaultRestarts is the default of --max-restarts; mostRestarts is its limit.
const (
	DefaultRestarts = 5
	mostRestarts    = 1_000_000
)

// RestartPause is the increasing pause between the runs of a command. It counts the
// restarts in a row.
type RestartPause struct {
	last     time.Duration
	restarts int
}

// The pauses before a restart, and the run time after which a command counts as
// healthy.
const (
	ShortestPause = 100 * time.Millisecond
	longestPause  = 30 * time.Second
	healthyLife   = time.Minute
)

// Ran records how long the command ran.
func (p *RestartPause) Ran(uptime time.Duration) {
	if uptime >= healthyLife {
		*p = RestartPause{}
	}
}

// Next returns the pause before the next run.
func (p *RestartPause) Next() time.Duration {
	p.last = min(max(ShortestPause, 2*p.last), longestPause)
	p.restarts++
	return p.last
}

// Restarts returns how often the command was restarted since it last ran for long.
func (p *RestartPause) Restarts() int { return p.restarts }

// RestartPolicy says when a command is restarted after its own end.
type RestartPolicy string

// The policies.
const (
	RestartNever     RestartPolicy = "never"
	RestartOnFailure RestartPolicy = "on-failure"
	RestartAlways    RestartPolicy = "always"
)

// Set implements pflag.Value.
func (p *RestartPolicy) Set(s string) error {
	switch policy := RestartPolicy(s); policy {
	case RestartNever, RestartOnFailure, RestartAlways:
		*p = policy
		return nil
	}
	return errors.New("it must be never, on-failure or always")
}

func (p *RestartPolicy) String() string { return string(*p) }

// Type implements pflag.Value.
func (p *RestartPolicy) Type() string { return "policy" }

// Again reports whether a command is restarted after this exit code.
func (p RestartPolicy) Again(code int) bool {
	return p == RestartAlways || p == RestartOnFailure && code != 0
}
