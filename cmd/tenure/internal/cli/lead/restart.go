package lead

import (
	"errors"
	"time"
)

// RestartPause is the growing pause between the runs of a command.
type RestartPause struct{ last time.Duration }

// The pauses before a command is started again, and the life after which it
// counts as healthy.
const (
	ShortestPause = 100 * time.Millisecond
	longestPause  = 30 * time.Second
	healthyLife   = time.Minute
)

// Ran notes how long the command lived.
func (p *RestartPause) Ran(life time.Duration) {
	if life >= healthyLife {
		p.last = 0
	}
}

// Next returns the pause before the next run.
func (p *RestartPause) Next() time.Duration {
	p.last = min(max(ShortestPause, 2*p.last), longestPause)
	return p.last
}

// RestartPolicy says when a command that has ended by itself is started again.
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

// Again reports whether a command that has ended with a code is started again.
func (p RestartPolicy) Again(code int) bool {
	return p == RestartAlways || p == RestartOnFailure && code != 0
}
