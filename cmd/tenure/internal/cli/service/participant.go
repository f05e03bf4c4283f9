package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/connect"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/postgres"
)

// Participant is this process's part in elections: a node, which is a member of
// its cluster where the database keeps a registry of nodes.
type Participant struct {
	Node   *tenure.Node
	member *cluster.Member // nil with leases
}

// join opens a node as a member of its cluster; with leases, as a node alone.
func (f *MembershipFlags) join(ctx context.Context, opened connect.Backend, config tenure.Config) (*Participant, error) {
	store, ok := opened.(*postgres.Backend)
	if !ok {
		config.UniqueName = f.uniqueNames
		return openAlone(ctx, opened, config)
	}
	joined, err := f.config()
	if err != nil {
		return nil, err
	}
	if joined.Heartbeat.Interval == 0 && config.RefreshInterval > defaultHeartbeat {
		joined.Heartbeat.Interval = config.RefreshInterval // the default outranks no flag
	}
	if runtime.GOOS != "linux" {
		if config.Load, err = measuredLoad(); err != nil {
			return nil, fmt.Errorf("measuring the load of this process: %w", err)
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

// defaultHeartbeat is that of cluster.HeartbeatConfig.
const defaultHeartbeat = 5 * time.Second

// openAlone opens a node that is no member of a cluster.
func openAlone(ctx context.Context, opened connect.Backend, config tenure.Config) (*Participant, error) {
	node, err := tenure.Open(ctx, opened, config)
	if err != nil {
		return nil, err
	}
	return &Participant{Node: node}, nil
}

// leave gives up what the node leads and leaves. A member leaves politely, within
// bounds of its own: it is seen to drain first.
func (p *Participant) leave(config tenure.Config) error {
	if p.member != nil {
		return p.member.Shutdown(context.Background())
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout(config))
	defer cancel()
	return p.Node.Close(ctx)
}

// unready says why the node does not accept work, or nothing.
func (p *Participant) unready() error {
	if p.member != nil {
		return p.member.Ready()
	}
	if !p.Node.Connected() {
		return fmt.Errorf("%w; opening a new one is tried", tenure.ErrSessionLost)
	}
	return nil
}

// report logs, until the context ends, why a node does not stand for roles yet,
// and when it does. The function that it returns ends it.
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
	log.Warn("the node waits before it stands for roles", "reason", console.OneLine(err))
	news, stop := p.Node.Subscribe()
	defer stop()
	var late <-chan time.Time
	if startup > 0 {
		late = time.After(startup)
	}
	for {
		err := p.unready()
		if err == nil {
			log.Warn("the node stands for roles now")
			return
		}
		select {
		case <-news:
		case <-late:
			log.Error("the node has waited too long and goes on waiting", "startup_timeout", startup, "reason", console.OneLine(err))
		case <-ctx.Done():
			return
		}
	}
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
