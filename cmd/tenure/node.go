package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure"
)

// nodeFlags are the flags of commands that take part in elections.
type nodeFlags struct {
	database databaseFlags
	log      logFlags
	flags    *pflag.FlagSet

	manual  bool
	name    string
	lease   duration
	refresh duration
	margin  duration
	check   duration
	lock    duration
	fence   duration
	stop    duration
	settle  duration
	wait    duration
}

func (f *nodeFlags) register(flags *pflag.FlagSet, logLevel string) {
	f.flags = flags
	f.database.register(flags)
	f.log.register(flags, logLevel)
	f.settle.allowZero, f.wait.allowZero = true, true
	flags.BoolVar(&f.manual, "manual-migrations", false, "refuse a missing or older schema instead of migrating it")
	flags.StringVar(&f.name, "name", "", "what people call this node; default the host's name and the process id")
	flags.Var(&f.lease, "lease", "how long the database keeps a silent node's roles; default 10s, on SQLite 3s")
	flags.Var(&f.refresh, "refresh", "time between heartbeats; default a third of the lease")
	flags.Var(&f.refresh, "health-interval", "the same as --refresh")
	flags.Var(&f.margin, "margin", "how much earlier than the lease the node stops trusting itself; default a tenth of it")
	flags.Var(&f.check, "check-interval", "time between attempts when no news comes; default 5s")
	flags.Var(&f.lock, "lock-timeout", "how long to wait for fenced transactions of the last term; default 10s")
	flags.Var(&f.fence, "fence-timeout", "when to end such transactions; default 5s")
	flags.Var(&f.stop, "stop-timeout", "how long work in flight may go on after a stop; default 10s")
	flags.Var(&f.settle, "settle", "extra wait after a term that ended uncleanly; default 0s")
	flags.Var(&f.wait, "failover-wait", "least wait on another server than the last term's; default one lease")
}

// config returns the configuration of the node. Logs go to w.
func (f *nodeFlags) config(w io.Writer) (tenure.Config, error) {
	if f.flags.Changed("refresh") && f.flags.Changed("health-interval") {
		return tenure.Config{}, usage("--refresh and --health-interval are the same: give one of them")
	}
	if f.flags.Changed("name") && f.name == "" {
		return tenure.Config{}, usage("--name is empty")
	}
	logger, err := f.log.logger(w)
	if err != nil {
		return tenure.Config{}, err
	}
	return tenure.Config{
		Name: f.name, Lease: f.lease.value, RefreshInterval: f.refresh.value, Margin: f.margin.value,
		CheckInterval: f.check.value, LockTimeout: f.lock.value, FenceTimeout: f.fence.value,
		StopTimeout: f.stop.value, Settle: f.settle.value, FailoverWait: f.wait.value, Logger: logger,
	}, nil
}

// with opens a node, runs fn with it as a service, and leaves. The context bounds
// opening; when it ends afterwards, the node leaves and then the context of fn
// ends, so that a member is seen to drain before its work ends.
func (f *nodeFlags) with(ctx context.Context, config tenure.Config, as membership, fn func(context.Context, *participant) error) error {
	changeable := live{"log-level": f.log.setLevel}
	maps.Copy(changeable, as.live())
	service, err := newService(f.flags, changeable, config.Logger)
	if err != nil {
		return err
	}
	defer service.close()
	backend, err := f.database.open(ctx, f.manual)
	if err != nil {
		return err
	}
	defer backend.Close()
	p, err := as.join(ctx, backend, config)
	if err != nil {
		return err
	}
	service.ready(p)
	// By then what starting and the first elections need has been used.
	defer time.AfterFunc(atRest, returnMemory).Stop()
	leave := sync.OnceValue(func() error {
		service.stopping()
		return p.leave(config)
	})
	life, end := ctx, func() bool { return true }
	if p.member != nil {
		var cancel context.CancelCauseFunc
		life, cancel = context.WithCancelCause(context.WithoutCancel(ctx))
		end = context.AfterFunc(ctx, func() {
			_ = leave() // it is asked again below
			cancel(context.Cause(ctx))
		})
	}
	err = fn(life, p)
	end()
	return errors.Join(err, leave())
}

// membership is how a node takes part in a cluster.
type membership interface {
	// join opens a node on a database.
	join(ctx context.Context, opened backend, config tenure.Config) (*participant, error)
	// live are the flags that can change afterwards.
	live() live
}
