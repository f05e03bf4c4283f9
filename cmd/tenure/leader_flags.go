package main

import (
	"os"
	"slices"
	"strings"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/notify"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// leaderFlags are the flags of a command whose node leads roles.
type leaderFlags struct {
	node    nodeFlags
	roles   roleFlags
	command commandFlags
	listen  listenFlags
	member  membershipFlags

	retryBase     duration
	retryMax      duration
	grace         duration
	noAutoAcquire bool
}

func (f *leaderFlags) register(flags *pflag.FlagSet) {
	f.roles.register(flags, "stand for")
	f.node.register(flags, "warn")
	f.member.register(flags)
	f.grace.allowZero = true
	flags.Var(&f.retryBase, "retry-base", "first delay of exponential backoff, for attempts and for reconnecting; default 1s if --retry-max is set")
	flags.Var(&f.retryMax, "retry-max", "longest delay of exponential backoff; default 30s if --retry-base is set")
	flags.Var(&f.grace, "reconnect-grace", "how long to try to recover a lost role before telling; default 0s: not at all")
	flags.BoolVar(&f.noAutoAcquire, "no-auto-reacquire", false, "do not stand again after a loss or a step-down")
}

// config returns the configuration of the node.
func (f *leaderFlags) config(cmd *cobra.Command) (tenure.Config, error) {
	config, err := f.node.config(cmd.ErrOrStderr())
	if err != nil {
		return config, err
	}
	if cmd.Flags().Changed("retry-base") || cmd.Flags().Changed("retry-max") {
		base, limit := f.retryBase.value, f.retryMax.value
		if base == 0 {
			base = min(time.Second, limit)
		}
		if limit == 0 {
			limit = max(30*time.Second, base)
		}
		if base > limit {
			return config, usage("--retry-base (%v) is longer than --retry-max (%v)", base, limit)
		}
		config.Retry = tenure.ExponentialBackoff{Base: base, Max: limit}
	}
	return config, f.member.refuse(&f.node.database)
}

// commandSettle is what --settle is by default with a command. A connection that
// the server or the network ends frees the lock in the same instant in which the
// leader hears of it; the command must be dead before another one starts.
const commandSettle = 200 * time.Millisecond

// guardedConfig is the configuration of a node that runs commands.
func (f *leaderFlags) guardedConfig(cmd *cobra.Command) (tenure.Config, error) {
	if !f.node.flags.Changed("log-level") {
		f.node.log.level = "info"
	}
	config, err := f.config(cmd)
	if err != nil {
		return config, err
	}
	if config.Lease == 0 {
		if config.Lease, err = f.defaultLease(); err != nil {
			return config, err
		}
	}
	if !f.node.flags.Changed("settle") {
		config.Settle = commandSettle
	}
	return config, nil
}

// defaultLease is the lease of a node that is not told one.
func (f *leaderFlags) defaultLease() (time.Duration, error) {
	if _, err := f.node.database.target(); err != nil {
		return 0, err
	}
	backend, err := f.node.database.offline()
	if err != nil {
		return 0, err
	}
	defer backend.Close()
	if defaulter, ok := backend.(tenure.LeaseDefaulter); ok {
		return defaulter.DefaultLease(), nil
	}
	return 10 * time.Second, nil
}

// environment is that of every run of the command: this program's, with the
// connection string only if it is wanted.
func (f *leaderFlags) environment() ([]string, error) {
	var kept []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.Contains(commandVariables, name) && !slices.Contains(notify.Variables, name) {
			kept = append(kept, entry)
		}
	}
	if f.command.passDSN {
		dsn, err := f.node.database.connectionString()
		if err != nil {
			return nil, err
		}
		if dsn != "" {
			kept = append(kept, dsnVariable+"="+dsn)
		}
	}
	return kept, nil
}
