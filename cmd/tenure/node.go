package main

import (
	"context"
	"errors"
	"io"
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

// with opens a node, runs fn with it as a service, and closes it. The context
// bounds opening only.
func (f *nodeFlags) with(ctx context.Context, config tenure.Config, fn func(*tenure.Node) error) error {
	service, err := newService(f.flags, live{"log-level": f.log.setLevel}, config.Logger)
	if err != nil {
		return err
	}
	defer service.close()
	backend, err := f.database.open(ctx, f.manual)
	if err != nil {
		return err
	}
	defer backend.Close()
	node, err := tenure.Open(ctx, backend, config)
	if err != nil {
		return err
	}
	service.ready(node)
	err = fn(node)
	service.stopping()
	closing, cancel := context.WithTimeout(context.Background(), closeTimeout(config))
	defer cancel()
	return errors.Join(err, node.Close(closing))
}

// closeTimeout bounds leaving: work in flight ends, and the database answers
// within a lease or never.
func closeTimeout(config tenure.Config) time.Duration {
	const usual = 10 * time.Second // the default of both
	limit := 2 * time.Second
	for _, d := range []time.Duration{config.StopTimeout, config.Lease} {
		if d == 0 {
			d = usual
		}
		limit += d
	}
	return limit
}
