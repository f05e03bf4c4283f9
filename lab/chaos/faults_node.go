//go:build linux

package main

import (
	"context"
	"syscall"
	"time"

	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/lab/chaos/script"
)

// shutdownLimit bounds a graceful shutdown: work in flight, the release of all roles,
// and a server that answers late.
const shutdownLimit = 45 * time.Second

func restart(m *member) func(context.Context) error {
	return func(context.Context) error { return m.start() }
}

func killNode(_ context.Context, _ *bed, m *member, _ script.Step) (func(context.Context) error, string, error) {
	m.kill()
	return restart(m), "", nil
}

func terminateNode(ctx context.Context, b *bed, m *member, _ script.Step) (func(context.Context) error, string, error) {
	if err := m.terminate(ctx, shutdownLimit); err != nil && ctx.Err() == nil {
		b.recordViolation("%v", err)
	}
	return restart(m), "", nil
}

func stopNode(_ context.Context, _ *bed, m *member, _ script.Step) (func(context.Context) error, string, error) {
	return func(context.Context) error { return m.signal(syscall.SIGCONT) }, "", m.signal(syscall.SIGSTOP)
}

func freezeNode(ctx context.Context, b *bed, m *member, s script.Step) (func(context.Context) error, string, error) {
	if b.freezers == nil {
		heal, _, err := stopNode(ctx, b, m, s)
		return heal, "by SIGSTOP", err
	}
	return func(context.Context) error { return b.freezers.freeze(m.number, false) }, "by its control group", b.freezers.freeze(m.number, true)
}

func cut(ctx context.Context, b *bed, m *member, _ script.Step) (func(context.Context) error, string, error) {
	if m.relay != nil {
		return stall(m)
	}
	i := m.number - 1
	return func(ctx context.Context) error { return b.network.Rejoin(ctx, i) }, "in its namespace", b.network.Isolate(ctx, i)
}

// stall makes the relay of a node forward nothing.
func stall(m *member, directions ...faultwire.Direction) (func(context.Context) error, string, error) {
	m.relay.Stall(directions...)
	return func(context.Context) error { m.relay.Resume(directions...); return nil }, "in its relay", nil
}

func cutToServer(ctx context.Context, b *bed, m *member, _ script.Step) (func(context.Context) error, string, error) {
	if m.relay != nil {
		return stall(m, faultwire.ToServer)
	}
	i, host := m.number-1, b.network.Host(0)
	return func(ctx context.Context) error { return b.network.Find(ctx, i, host) }, "in its namespace", b.network.Lose(ctx, i, host)
}

func cutToNode(ctx context.Context, b *bed, m *member, _ script.Step) (func(context.Context) error, string, error) {
	if m.relay != nil {
		return stall(m, faultwire.ToClient)
	}
	i := m.number - 1
	return func(ctx context.Context) error { return b.network.FindFromHost(ctx, i) }, "in its namespace", b.network.LoseFromHost(ctx, i)
}

func delay(_ context.Context, _ *bed, m *member, s script.Step) (func(context.Context) error, string, error) {
	m.relay.Delay(s.By)
	return func(context.Context) error { m.relay.Delay(0); return nil }, "in its relay", nil
}

func reset(_ context.Context, _ *bed, m *member, _ script.Step) (func(context.Context) error, string, error) {
	for _, conn := range m.relay.Connections() {
		conn.Cut()
	}
	return nil, "in its relay", nil
}

func receiverDown(_ context.Context, b *bed, _ *member, _ script.Step) (func(context.Context) error, string, error) {
	b.receiver.down.Store(true)
	return func(context.Context) error { b.receiver.down.Store(false); return nil }, "", nil
}

func receiverSlow(_ context.Context, b *bed, _ *member, _ script.Step) (func(context.Context) error, string, error) {
	b.receiver.slow.Store(true)
	return func(context.Context) error { b.receiver.slow.Store(false); return nil }, "", nil
}
