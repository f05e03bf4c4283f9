//go:build linux

package main

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/exactly-one/tenure/internal/sandbox"
)

// kind is one way to provoke a failover.
type kind struct {
	name string
	does string
	// namespaces says that the fault cannot be made without them.
	namespaces bool
	// proxy says that the fault is one of the proxy.
	proxy bool
	// hold is the least time that the fault lasts. Then it lasts until lasts returns,
	// if that is set.
	hold  time.Duration
	lasts func(ctx context.Context, b *bed, since time.Time) error
	// judge records what differs from the documents; may be nil.
	judge func(b *bed, r *round)
	// inject makes the fault at the primary and returns what ends it.
	inject func(ctx context.Context, b *bed, primary, standby *server) (heal func(context.Context) error, err error)
}

// longestHold bounds what a fault waits for.
const longestHold = 30 * time.Second

func nothing(context.Context) error { return nil }

var kinds = []kind{
	{name: "kill", does: "SIGKILL of the primary", inject: killPrimary},
	{name: "switchover", does: "a switchover that an operator asks for", inject: switchOver},
	{name: "restart", does: "a restart of the primary that an operator asks for", inject: restartPrimary},
	{
		name: "freeze", does: "SIGSTOP of the primary and its Patroni, beyond the ttl; then it returns",
		hold: (ttl + 2) * time.Second, lasts: untilNextTerm, inject: freezePrimary,
	},
	{
		name: "kill-patroni", does: "SIGKILL of the primary's Patroni; PostgreSQL keeps running. Patroni returns after the ttl",
		hold: (ttl + 4) * time.Second, inject: killPatroni,
	},
	{
		name: "etcd-pause", does: "SIGSTOP of etcd, beyond the ttl",
		hold: (ttl + retryTimeout + 2) * time.Second, inject: pauseEtcd,
	},
	{
		name: "cut-standbys", does: "the primary is cut off from its standbys, but not from etcd and the nodes",
		hold: (ttl + 2) * time.Second, inject: cutStandbys,
	},
	{
		name: "isolate", does: "the primary is cut off from everything", namespaces: true,
		hold: (ttl + 2) * time.Second, lasts: untilNextTerm, inject: isolate,
	},
	{
		name: "orphan", does: "the primary is cut off from its standbys and from etcd, but not from the nodes", namespaces: true,
		hold: (ttl + 2) * time.Second, lasts: untilNextTerm, inject: orphan,
	},
	{
		name: "split", does: "SIGSTOP of the primary's Patroni, and the primary is cut off from etcd; a node joins that knows the other servers only, or HAProxy",
		lasts: untilSplitIsSeen, judge: (*bed).judgeSplit, inject: split,
	},
	{name: "restart-patroni", does: "SIGKILL of the primary's Patroni, which returns within the ttl", hold: 1500 * time.Millisecond, inject: killPatroni},
	{name: "proxy-restart", does: "SIGKILL of HAProxy, which returns immediately", proxy: true, inject: killProxy},
	{name: "proxy-kill", does: "SIGKILL of HAProxy, which returns after 5 s", proxy: true, hold: 5 * time.Second, inject: killProxy},
	{name: "proxy-freeze", does: "SIGSTOP of HAProxy for 8 s; then it continues", proxy: true, hold: 8 * time.Second, inject: freezeProxy},
}

func killPrimary(_ context.Context, _ *bed, primary, _ *server) (func(context.Context) error, error) {
	pid, err := primary.postmaster()
	if err != nil {
		return nil, err
	}
	return nothing, sandbox.Signal(pid, syscall.SIGKILL)
}

// switchOver asks again as long as Patroni finds no standby that is good enough,
// which it does while the standbys are slow to answer; the fault begins when it does.
func switchOver(ctx context.Context, b *bed, primary, standby *server) (func(context.Context) error, error) {
	order := map[string]string{"leader": primary.name}
	if standby != nil {
		order["candidate"] = standby.name
	}
	var err error
	for range 30 {
		b.faultAt = time.Now()
		if err = primary.post(ctx, b, "/switchover", order); err == nil || !errors.Is(err, errRefused) {
			break
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nothing, ctx.Err()
		}
	}
	return nothing, err
}

func restartPrimary(ctx context.Context, b *bed, primary, _ *server) (func(context.Context) error, error) {
	return nothing, primary.post(ctx, b, "/restart", struct{}{})
}

func freezePrimary(_ context.Context, b *bed, primary, _ *server) (func(context.Context) error, error) {
	thaw, err := primary.freeze(b)
	return func(context.Context) error { thaw(); return nil }, err
}

func killPatroni(_ context.Context, b *bed, primary, _ *server) (func(context.Context) error, error) {
	primary.killPatroni()
	return func(context.Context) error { return primary.start(b) }, nil
}

func pauseEtcd(_ context.Context, b *bed, _, _ *server) (func(context.Context) error, error) {
	resume := b.etcd.pause(b.box)
	return func(context.Context) error { resume(); return nil }, nil
}

func cutStandbys(ctx context.Context, b *bed, primary, _ *server) (func(context.Context) error, error) {
	return func(ctx context.Context) error {
		return b.network.joinMembers(ctx, primary.index, members)
	}, b.network.cutFromMembers(ctx, primary.index, members)
}

func isolate(ctx context.Context, b *bed, primary, _ *server) (func(context.Context) error, error) {
	return func(ctx context.Context) error {
		return b.network.Rejoin(ctx, primary.index)
	}, b.network.Isolate(ctx, primary.index)
}

func orphan(ctx context.Context, b *bed, primary, standby *server) (func(context.Context) error, error) {
	heal, err := cutStandbys(ctx, b, primary, standby)
	if err != nil {
		return heal, err
	}
	return func(ctx context.Context) error {
		if err := b.network.Find(ctx, primary.index, b.network.etcdAddress()); err != nil {
			return err
		}
		return heal(ctx)
	}, b.network.Lose(ctx, primary.index, b.network.etcdAddress())
}
