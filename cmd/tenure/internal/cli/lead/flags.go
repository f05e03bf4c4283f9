// Package lead implements the common parts of the commands that lead roles and run other
// commands.
package lead

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/internal/program/notify"
	"github.com/exactly-one/tenure/internal/program/service"
	"github.com/exactly-one/tenure/internal/program/settings"
	"github.com/exactly-one/tenure/retry"
)

// Flags are the flags of a command that leads roles.
type Flags struct {
	service.Flags

	Roles   flagvalue.RoleFlags
	OneRole bool // the command leads one role, set before Register
	Command CommandFlags

	retryBase     flagvalue.Duration
	retryMax      flagvalue.Duration
	Grace         flagvalue.Duration
	NoAutoAcquire bool
	requires      flagvalue.Labels
	nodeRole      string
	prefers       flagvalue.Labels
	priority      flagvalue.Number
	takeOver      flagvalue.Duration
	noLeader      bool
}

// ElectionConfig returns the configuration of the elections.
func (f *Flags) ElectionConfig() tenure.ElectionConfig {
	return tenure.ElectionConfig{
		ReconnectGrace: f.Grace.Value, NoReacquire: f.NoAutoAcquire,
		Requires: f.requires.Values, RequiresNodeRole: f.nodeRole,
		Prefers: f.prefers.Values, TakeOverAfter: f.takeOver.Value,
	}
}

// Register adds the flags.
func (f *Flags) Register(flags *pflag.FlagSet) {
	if f.OneRole {
		f.Roles.RegisterSingle(flags, "campaign for")
	} else {
		f.Roles.Register(flags, "campaign for")
	}
	f.Node.Register(flags, "warn")
	flags.Lookup("settle").Usage = service.SettleUsage("0s, with a command 200ms")
	f.Member.Register(flags)
	f.Grace.AllowZero = true
	flags.Var(&f.retryBase, "retry-base", "first delay of exponential backoff, for attempts and for reconnecting; default 1s if --retry-max is set")
	flags.Var(&f.retryMax, "retry-max", "longest delay of exponential backoff; default 30s if --retry-base is set")
	flags.Var(&f.Grace, "reconnect-grace", "how long to withhold the lost event while trying to regain a role; default 0s: off")
	flags.BoolVar(&f.NoAutoAcquire, "no-auto-reacquire", false, "do not campaign again after a loss or a step-down")
	flags.Var(&f.requires, "require", "a label that the node must have to campaign, NAME=VALUE; repeatable; use the same value on every node")
	flags.StringVar(&f.nodeRole, "require-node-role", "", "a node role that the node must have to campaign, such as scheduler; use the same value on every node; default none")
	f.registerPreference(flags)
	flags.BoolVar(&f.noLeader, "no-leader", false, "campaign for no role: the node only watches")
}

// Config returns the configuration of the node.
func (f *Flags) Config(cmd *cobra.Command) (tenure.Config, error) {
	config, err := f.Node.Config(cmd.ErrOrStderr())
	if err != nil {
		return config, err
	}
	config.NoLeader = f.noLeader
	if err := f.applyPreference(cmd.Flags()); err != nil {
		return config, err
	}
	if cmd.Flags().Changed("retry-base") || cmd.Flags().Changed("retry-max") {
		base, limit := f.retryBase.Value, f.retryMax.Value
		base = cmp.Or(base, min(time.Second, limit))
		limit = cmp.Or(limit, max(30*time.Second, base))
		if base > limit {
			return config, console.Usage("--retry-base (%v) is longer than --retry-max (%v)", base, limit)
		}
		config.Retry = retry.ExponentialBackoff{Base: base, Max: limit}
	}
	if f.Node.Agent != "" {
		return config, f.Member.RefuseWithAgent()
	}
	return config, f.Member.Refuse(&f.Node.Database)
}

// commandSettle is the default of --settle with a command. If the server or the
// network ends a connection, the lock is released at the moment when the leader learns
// of it; the command must be dead before another one starts.
const commandSettle = 200 * time.Millisecond

// GuardedConfig returns the configuration of a node that runs commands.
func (f *Flags) GuardedConfig(cmd *cobra.Command) (tenure.Config, error) {
	if !f.Node.Flags.Changed("log-level") {
		f.Node.Log.Level = "info"
	}
	config, err := f.Config(cmd)
	if err != nil {
		return config, err
	}
	if config.Lease == 0 {
		if config.Lease, err = f.defaultLease(); err != nil {
			return config, err
		}
	}
	if !f.Node.Flags.Changed("settle") {
		config.Settle = commandSettle
	}
	return config, nil
}

// defaultLease returns the lease of a node without --lease.
func (f *Flags) defaultLease() (time.Duration, error) {
	if f.Node.Agent != "" {
		return 10 * time.Second, nil
	}
	if _, err := f.Node.Database.Target(); err != nil {
		return 0, err
	}
	backend, err := f.Node.Database.Offline()
	if err != nil {
		return 0, err
	}
	defer backend.Close()
	if defaulter, ok := backend.(interface{ DefaultLease() time.Duration }); ok {
		return defaulter.DefaultLease(), nil
	}
	return 10 * time.Second, nil
}

// Environment returns the environment for all runs of the command: this program's, except
// settings.CommandVariables and notify.Variables. With --pass-dsn it has the variables
// that name a database, and settings.DSNVariable; otherwise it has none of them.
func (f *Flags) Environment() ([]string, error) {
	var kept []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		switch {
		case slices.Contains(settings.CommandVariables, name), slices.Contains(notify.Variables, name):
		case connect.NamesDatabase(name) && !f.Command.passDSN:
		default:
			kept = append(kept, entry)
		}
	}
	if f.Command.passDSN {
		dsn, err := f.Node.Database.ConnectionString()
		if err != nil {
			return nil, err
		}
		if dsn != "" {
			kept = append(kept, settings.DSNVariable+"="+dsn)
		}
	}
	return kept, nil
}
