package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/postgres"
)

// Participant is this process's node. It is a member of its cluster if the database has a
// registry of nodes.
type Participant struct {
	Node   *tenure.Node
	member *cluster.Member // nil with leases and with an agent
}

// join opens a node as a member of its cluster; with leases or an agent, without a
// cluster.
func (f *MembershipFlags) join(ctx context.Context, opened tenure.Backend, config tenure.Config) (*Participant, error) {
	joined, err := f.config()
	if err != nil {
		return nil, err
	}
	store, ok := opened.(*postgres.Backend)
	if !ok {
		local := cluster.LocalNode(joined)
		config.UniqueName = f.uniqueNames
		config.Description = tenure.Description{
			Address: local.Address, HTTPPort: local.HTTPPort, GRPCPort: local.GRPCPort, Labels: local.Labels, Version: local.Version,
		}
		return openAlone(ctx, opened, config)
	}
	if joined.Heartbeat.Interval == 0 && config.RefreshInterval > defaultHeartbeat {
		joined.Heartbeat.Interval = config.RefreshInterval // a flag takes precedence over the default
	}
	if runtime.GOOS != "linux" {
		if config.Load, err = measuredLoad(); err != nil {
			return nil, fmt.Errorf("measure the load of this process: %w", err)
		}
	}
	member, err := cluster.Join(ctx, store, config, joined)
	if err != nil {
		return nil, err
	}
	if err := f.leaving.joined(member); err != nil {
		return nil, errors.Join(err, member.Close(ctx))
	}
	return &Participant{member.Node(), member}, nil
}

// defaultHeartbeat is the default of cluster.HeartbeatConfig.
const defaultHeartbeat = 5 * time.Second

// openAlone opens a node without a cluster.
func openAlone(ctx context.Context, opened tenure.Backend, config tenure.Config) (*Participant, error) {
	node, err := tenure.Open(ctx, opened, config)
	if err != nil {
		return nil, err
	}
	return &Participant{Node: node}, nil
}

// leave releases the node's roles and leaves. A member leaves gracefully within
// its own time limits: other nodes see it drain first.
func (p *Participant) leave(config tenure.Config) error {
	if p.member != nil {
		return p.member.Shutdown(context.Background())
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout(config))
	defer cancel()
	return p.Node.Close(ctx)
}

// unready returns why the node does not accept work, or nil.
func (p *Participant) unready() error {
	if p.member != nil {
		return p.member.Ready()
	}
	if !p.Node.Connected() {
		return fmt.Errorf("%w; a new one is being opened", tenure.ErrSessionLost)
	}
	return nil
}

// report logs, until ctx ends or stop is called, why a node does not campaign
// yet, and when it does.
func (f *MembershipFlags) report(ctx context.Context, p *Participant, log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var reporting sync.WaitGroup
	reporting.Go(func() { reportReady(ctx, p, f.startup.Value, log) })
	return func() {
		cancel()
		reporting.Wait()
	}
}

func reportReady(ctx context.Context, p *Participant, startup time.Duration, log *slog.Logger) {
	err := p.unready()
	if err == nil {
		return
	}
	log.Warn("the node waits before it campaigns", "reason", console.OneLine(err))
	wakeups, stop := p.Node.Subscribe()
	defer stop()
	var late <-chan time.Time
	if startup > 0 {
		late = time.After(startup)
	}
	for {
		err := p.unready()
		if err == nil {
			log.Warn("the node campaigns now")
			return
		}
		select {
		case <-wakeups:
		case <-late:
			log.Error("the startup timeout has passed; the node keeps waiting", "startup_timeout", startup, "reason", console.OneLine(err))
		case <-ctx.Done():
			return
		}
	}
}

// closeTimeout limits leaving: work in flight ends, and the database responds
// within a lease or not at all.
func closeTimeout(config tenure.Config) time.Duration {
	const usual = 10 * time.Second // the default of both
	limit := 2 * time.Second
	for _, d := range []time.Duration{config.StopTimeout, config.Lease} {
		d = cmp.Or(d, usual)
		limit += d
	}
	return limit
}
