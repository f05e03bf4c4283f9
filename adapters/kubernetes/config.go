package kubernetes

import (
	"cmp"
	"fmt"
	"time"

	"github.com/exactly-one/tenure"
)

// Config has the settings of the elector, for the lock to check. The zero value fits the
// defaults of core clients and of controller-runtime.
type Config struct {
	// RenewDeadline is the elector's. Default: 10 s.
	RenewDeadline time.Duration
	// RetryPeriod is the elector's. Default: 2 s.
	RetryPeriod time.Duration
}

func (c Config) withDefaults() Config {
	c.RenewDeadline = cmp.Or(c.RenewDeadline, 10*time.Second)
	c.RetryPeriod = cmp.Or(c.RetryPeriod, 2*time.Second)
	return c
}

// leadsFor returns how long an elector leads at most after a renewal: it waits for
// the retry period, and then tries to renew until the deadline.
func (c Config) leadsFor() time.Duration { return c.RetryPeriod + c.RenewDeadline }

// validate checks the settings against the node's: after failed renewals, the elector
// must step down before trust in the term ends.
func (c Config) validate(node tenure.Timing) error {
	if c.RenewDeadline <= 0 || c.RetryPeriod <= 0 {
		return fmt.Errorf("%w: the renew deadline is %v and the retry period %v; they must be more than 0",
			tenure.ErrInvalidConfig, c.RenewDeadline, c.RetryPeriod)
	}
	if trust := node.Lease - node.Margin; c.leadsFor() >= trust {
		return fmt.Errorf("%w: the retry period (%v) plus the renew deadline (%v) must be less than the node's lease minus its margin (%v): "+
			"set a longer tenure.Config.Lease, or a shorter renew deadline", tenure.ErrInvalidConfig, c.RetryPeriod, c.RenewDeadline, trust)
	}
	return nil
}
