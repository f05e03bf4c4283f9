package service

import (
	"sync"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/internal/program/settings"
)

// leavingFlags are the flags for how a member drains and leaves. They can
// change while the program runs.
type leavingFlags struct {
	poll flagvalue.Duration // not used

	mu     sync.Mutex
	drain  flagvalue.Duration
	force  flagvalue.Duration
	member *cluster.Member // nil until it has joined
}

func (f *leavingFlags) register(flags *pflag.FlagSet) {
	flags.Var(&f.drain, "drain-timeout", "how long work in flight may take when the node drains or leaves; default 30s")
	flags.Var(&f.poll, "drain-poll-interval", "ignored; accepted for compatibility (the node reacts as soon as in-flight work ends)")
	flags.Var(&f.force, "force-after", "how long leaving may take before the session is closed; default the drain timeout plus the stop timeout plus two leases")
}

// config returns the current settings.
func (f *leavingFlags) config() cluster.ShutdownConfig {
	f.mu.Lock()
	defer f.mu.Unlock()
	return cluster.ShutdownConfig{DrainTimeout: f.drain.Value, ForceAfter: f.force.Value}
}

// joined applies the settings to a member, including changes during its joining.
func (f *leavingFlags) joined(member *cluster.Member) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.member = member
	return f.applyLocked()
}

// applyLocked applies the current settings to the member.
func (f *leavingFlags) applyLocked() error {
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
			if value != "" { // empty for the default
				if err := next.Set(value); err != nil {
					return err
				}
			}
			flag.Value = next.Value
			return f.applyLocked()
		}
	}
	return settings.Live{"drain-timeout": change(&f.drain), "force-after": change(&f.force), "drain-poll-interval": change(&f.poll)}
}
