// Package service runs a node as a long-lived program: it opens the node, joins
// its cluster, serves HTTP, and leaves after a signal.
package service

import (
	"context"
	"errors"
	"io"
	"maps"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/internal/program/settings"
)

// NodeFlags are the flags of commands that take part in elections.
type NodeFlags struct {
	Database connect.DatabaseFlags
	Log      console.LogFlags
	Flags    *pflag.FlagSet
	Agent    string        // the path of an agent's socket, instead of the database
	Grace    time.Duration // how long commands may take to end

	manual bool

	synchronous bool
	name        string
	lease       flagvalue.Duration
	refresh     flagvalue.Duration
	margin      flagvalue.Duration
	check       flagvalue.Duration
	lock        flagvalue.Duration
	fence       flagvalue.Duration
	stop        flagvalue.Duration
	settle      flagvalue.Duration
	wait        flagvalue.Duration
}

// Register adds the flags.
func (f *NodeFlags) Register(flags *pflag.FlagSet, logLevel string) {
	f.Flags = flags
	f.Database.Register(flags)
	f.Log.Register(flags, logLevel)
	f.settle.AllowZero, f.wait.AllowZero = true, true
	flags.BoolVar(&f.manual, "manual-migrations", false, "reject a missing or older schema instead of migrating it")
	flags.StringVar(&f.name, "name", "", "`name` of this node; default the host name and the process id")
	flags.Var(&f.lease, "lease", "how long the database reserves the roles of a silent node; default 10s, on SQLite 3s")
	flags.Var(&f.refresh, "refresh", "time between heartbeats; default a third of the lease")
	flags.Var(&f.refresh, "health-interval", "the same as --refresh; without --lease, it also makes the lease at least three times as long")
	flags.Var(&f.margin, "margin", "how long before its lease expires a node stops trusting its terms; default a tenth of the lease")
	flags.Var(&f.check, "check-interval", "time between attempts if no notification arrives; default 5s")
	flags.Var(&f.lock, "lock-timeout", "how long a new term waits for fenced transactions of the old term; default 10s")
	flags.Var(&f.fence, "fence-timeout", "how long a fenced transaction of an old term may delay a new term before it is terminated; default 5s")
	flags.Var(&f.stop, "stop-timeout", "how long work in flight may continue when its term is stopping; default 10s")
	flags.Var(&f.settle, "settle", SettleUsage("0s"))
	flags.Var(&f.wait, "failover-wait", "minimum wait before a term begins on another server than the last term; default one lease")
	flags.BoolVar(&f.synchronous, "synchronous-failover", false, "declare that a promoted standby has every acknowledged commit, and that the old primary then acknowledges none: after a failover, wait until all nodes are back and the margin has passed")
}

// SettleUsage describes the flag --settle with a default that depends on the command.
func SettleUsage(standard string) string {
	return "extra wait before a new term if the last one ended uncleanly; default " + standard
}

// Config returns the configuration of the node. Logs go to w.
func (f *NodeFlags) Config(w io.Writer) (tenure.Config, error) {
	if f.Flags.Changed("refresh") && f.Flags.Changed("health-interval") {
		return tenure.Config{}, console.Usage("--refresh and --health-interval are the same: give one of them")
	}
	if f.Flags.Changed("name") && f.name == "" {
		return tenure.Config{}, console.Usage("--name is empty")
	}
	console.SurviveClosedOutput()
	logger, err := f.Log.Logger(w)
	if err != nil {
		return tenure.Config{}, err
	}
	lease := f.lease.Value
	if !f.Flags.Changed("lease") && f.Flags.Changed("health-interval") && f.refresh.Value > time.Second {
		lease = max(10*time.Second, 3*f.refresh.Value)
	}
	return tenure.Config{
		Name: f.name, Lease: lease, RefreshInterval: f.refresh.Value, Margin: f.margin.Value,
		CheckInterval: f.check.Value, LockTimeout: f.lock.Value, FenceTimeout: f.fence.Value,
		StopTimeout: f.stop.Value, Settle: f.settle.Value, FailoverWait: f.wait.Value,
		SynchronousFailover: f.synchronous, Logger: logger,
	}, nil
}

// RunAlone opens a node without a cluster, runs fn with it, and leaves.
func (f *NodeFlags) RunAlone(ctx context.Context, config tenure.Config, fn func(context.Context, *Participant) error) error {
	return f.run(ctx, config, openAlone, nil, fn)
}

// opener opens a node on a database.
type opener func(ctx context.Context, opened tenure.Backend, config tenure.Config) (*Participant, error)

// OpenBackend opens the agent or the database of the node. closeIt is not nil, unless
// there is an error.
func (f *NodeFlags) OpenBackend(ctx context.Context) (opened tenure.Backend, closeIt func(), err error) {
	if f.Agent != "" {
		return agent.New(f.Agent).WithGrace(f.Grace), func() {}, nil
	}
	backend, err := f.Database.Open(ctx, f.manual)
	if err != nil {
		return nil, nil, err
	}
	return backend, backend.Close, nil
}

// run opens a node, runs fn with it, and leaves. live are the changeable settings beyond
// the log level. ctx limits opening. When ctx ends later, the node leaves first and then
// the context of fn ends: other nodes see a member drain before its work ends.
func (f *NodeFlags) run(ctx context.Context, config tenure.Config, open opener, live settings.Live, fn func(context.Context, *Participant) error) error {
	changeable := settings.Live{"log-level": f.Log.SetLevel}
	maps.Copy(changeable, live)
	service, err := newService(f.Flags, changeable, config.Logger)
	if err != nil {
		return err
	}
	defer service.close()
	backend, closeBackend, err := f.OpenBackend(ctx)
	if err != nil {
		return err
	}
	defer closeBackend()
	p, err := open(ctx, backend, config)
	if err != nil {
		return err
	}
	service.ready(p)
	// By then, starting and the first elections are over.
	defer time.AfterFunc(AtRest, ReturnMemory).Stop()
	leave := sync.OnceValue(func() error {
		service.stopping()
		return p.leave(config)
	})
	runCtx, end := ctx, func() bool { return true }
	if p.member != nil {
		var cancel context.CancelCauseFunc
		runCtx, cancel = context.WithCancelCause(context.WithoutCancel(ctx))
		end = context.AfterFunc(ctx, func() {
			_ = leave() // its error is returned below
			cancel(context.Cause(ctx))
		})
	}
	err = fn(runCtx, p)
	end()
	return errors.Join(err, leave())
}
