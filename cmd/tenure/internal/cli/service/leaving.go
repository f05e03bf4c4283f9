package service

import (
	"sync"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/flagvalue"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/settings"
)

// leavingFlags are the flags that say how a member drains and leaves. They can
// change while the program runs.
type leavingFlags struct {
	poll flagvalue.Duration // is not used

	mu     sync.Mutex
	drain  flagvalue.Duration
	force  flagvalue.Duration
	member *cluster.Member // nil until it has joined
}

func (f *leavingFlags) register(flags *pflag.FlagSet) {
	flags.Var(&f.drain, "drain-timeout", "how long work in flight may go on when the node drains or leaves; default 30s")
	flags.Var(&f.poll, "drain-poll-interval", "accepted and not needed: the end of work in flight is seen at once")
	flags.Var(&f.force, "force-after", "bound on leaving, after which the session is cut; default the drain timeout, the stop timeout and two leases")
}

// config returns what the flags say now.
func (f *leavingFlags) config() cluster.ShutdownConfig {
	f.mu.Lock()
	defer f.mu.Unlock()
	return cluster.ShutdownConfig{DrainTimeout: f.drain.Value, ForceAfter: f.force.Value}
}

// joined lets changes take effect on a member, those among them that came while
// it joined.
func (f *leavingFlags) joined(member *cluster.Member) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.member = member
	return f.apply()
}

// apply makes the present values those of the member. Under the mutex.
func (f *leavingFlags) apply() error {
	if f.member == nil {
		return nil
	}
	return f.member.SetShutdown(cluster.ShutdownConfig{DrainTimeout: f.drain.Value, ForceAfter: f.force.Value})
}

func (f *leavingFlags) live() settings.Live {
	change := func(flag *flagvalue.Duration) func(string) error {
		return func(value string) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			var next flagvalue.Duration
			if value != "" { // else the default
				if err := next.Set(value); err != nil {
					return err
				}
			}
			flag.Value = next.Value
			return f.apply()
		}
	}
	return settings.Live{"drain-timeout": change(&f.drain), "force-after": change(&f.force), "drain-poll-interval": change(&f.poll)}
}
