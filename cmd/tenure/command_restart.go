package main

import (
	"errors"
	"time"
)

// restartPause is the growing pause between the runs of a command.
type restartPause struct{ last time.Duration }

// The pauses before a command is started again, and the life after which it
// counts as healthy.
const (
	shortestPause = 100 * time.Millisecond
	longestPause  = 30 * time.Second
	healthyLife   = time.Minute
)

// ran notes how long the command lived.
func (p *restartPause) ran(life time.Duration) {
	if life >= healthyLife {
		p.last = 0
	}
}

func (p *restartPause) next() time.Duration {
	p.last = min(max(shortestPause, 2*p.last), longestPause)
	return p.last
}

// restartPolicy says when a command that has ended by itself is started again.
type restartPolicy string

const (
	restartNever     restartPolicy = "never"
	restartOnFailure restartPolicy = "on-failure"
	restartAlways    restartPolicy = "always"
)

// Set implements pflag.Value.
func (p *restartPolicy) Set(s string) error {
	switch policy := restartPolicy(s); policy {
	case restartNever, restartOnFailure, restartAlways:
		*p = policy
		return nil
	}
	return errors.New("it must be never, on-failure or always")
}

func (p *restartPolicy) String() string { return string(*p) }

// Type implements pflag.Value.
func (p *restartPolicy) Type() string { return "policy" }

// again reports whether a command that has ended with a code is started again.
func (p restartPolicy) again(code int) bool {
	return p == restartAlways || p == restartOnFailure && code != 0
}
