package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/pgserver"
	"github.com/exactly-one/tenure/internal/sandbox"
)

// succeeded waits for the next leader after a fault.
func (b *bench) succeeded(ctx context.Context, begun time.Time) (outcome, error) {
	next, at, err := b.successor(ctx, "child-node", begun)
	return outcome{took: at.Sub(begun), begun: begun, at: at, next: next}, err
}

func killLeader(ctx context.Context, b *bench, leader *child) (outcome, error) {
	begun := time.Now()
	b.kill(leader)
	return b.succeeded(ctx, begun)
}

// endLeadershipBy returns a fault that makes the leader step down or close. The child
// reports when that began.
func endLeadershipBy(command string) func(context.Context, *bench, *child) (outcome, error) {
	return func(ctx context.Context, b *bench, leader *child) (outcome, error) {
		before := time.Now()
		if err := leader.Say(command); err != nil {
			return outcome{}, err
		}
		fault, err := leader.Await(ctx, "fault", before)
		if err != nil {
			return outcome{}, err
		}
		begun := fault.Time()
		out, err := b.succeeded(ctx, begun)
		if err == nil && command == "close" {
			<-leader.Ended()
			b.kill(leader)
		}
		return out, err
	}
}

func terminate(ctx context.Context, b *bench, _ *child) (outcome, error) {
	conn, err := pgx.Connect(ctx, b.server.DSN())
	if err != nil {
		return outcome{}, err
	}
	defer conn.Close(ctx)
	var pid int
	const leader = "SELECT n.pid FROM tenure_leaders l JOIN tenure_nodes n ON n.id = l.node_id"
	if err := conn.QueryRow(ctx, leader).Scan(&pid); err != nil {
		return outcome{}, err
	}
	begun := time.Now()
	if _, err := conn.Exec(ctx, "SELECT pg_terminate_backend($1)", pid); err != nil {
		return outcome{}, err
	}
	return b.succeeded(ctx, begun)
}

// stopLeader stops the leader's process for longer than its lease.
func stopLeader(ctx context.Context, b *bench, leader *child) (outcome, error) {
	begun := time.Now()
	if err := leader.Signal(sandbox.PauseSignal); err != nil {
		return outcome{}, err
	}
	out, err := b.succeeded(ctx, begun)
	resumed := time.Now()
	_ = leader.Signal(sandbox.ResumeSignal)
	if err != nil {
		return outcome{}, err
	}
	gap, err := leader.Await(ctx, "gap", resumed)
	if err != nil {
		return outcome{}, err
	}
	out.note = "not leader at its first look"
	if gap.Lead {
		out.note = "STILL LEADER at its first look"
	}
	// Reported right after the gap; otherwise the records would show it as leading.
	if _, err := leader.Await(ctx, "follow", resumed); err != nil {
		return outcome{}, err
	}
	return out, nil
}

func cutNetwork(ctx context.Context, b *bench, leader *child) (outcome, error) {
	begun := time.Now()
	if err := b.network.Isolate(ctx, 0); err != nil {
		return outcome{}, err
	}
	out, err := b.succeeded(ctx, begun)
	if err != nil {
		return outcome{}, err
	}
	b.kill(leader)
	return out, b.network.Rejoin(ctx, 0)
}

func restart(mode pgserver.StopMode) func(context.Context, *bench, *child) (outcome, error) {
	return func(ctx context.Context, b *bench, leader *child) (outcome, error) {
		if err := b.server.Stop(ctx, mode); err != nil {
			return outcome{}, err
		}
		begun := time.Now()
		if err := b.server.Start(ctx); err != nil {
			return outcome{}, err
		}
		return b.afterRestart(ctx, leader, begun, time.Now())
	}
}

// crashServer kills one backend, so that the server resets all.
func crashServer(ctx context.Context, b *bench, leader *child) (outcome, error) {
	conn, err := pgx.Connect(ctx, b.server.DSN())
	if err != nil {
		return outcome{}, err
	}
	begun := time.Now()
	if err := sandbox.Signal(int(conn.PgConn().PID()), syscall.SIGKILL); err != nil {
		return outcome{}, err
	}
	for conn.Ping(ctx) == nil { // until the server has noticed
		time.Sleep(time.Millisecond)
	}
	_ = conn.Close(ctx)
	if err := b.server.AwaitReady(ctx); err != nil {
		return outcome{}, err
	}
	return b.afterRestart(ctx, leader, begun, time.Now())
}

// afterRestart measures from when the server answered again.
func (b *bench) afterRestart(ctx context.Context, leader *child, begun, ready time.Time) (outcome, error) {
	out, err := b.succeeded(ctx, begun)
	if err != nil {
		return outcome{}, err
	}
	out.took = max(0, out.at.Sub(ready))
	out.begun = children.Earlier(ready, out.at)
	out.note = "another node"
	if out.next == leader {
		out.note = "same node"
	}
	return out, nil
}

// limit is what the machine can do: until a bare waiter has the lock, and until
// it has also begun the terms.
type limit struct{ locked, begun time.Duration }

// waiters are the bare connections: one holds the locks, one waits.
type waiters struct {
	holder *child
	roles  int // more than one: they also acquire and record so many
}

func (w *waiters) gather(ctx context.Context, b *bench) error {
	for range 2 {
		if w.holder != nil && w.count(b) == 2 {
			break
		}
		c, err := b.spawn(ctx, nil, "child-waiter", "-dsn", b.server.DSN(), "-roles", fmt.Sprint(w.roles))
		if err != nil {
			return err
		}
		if w.holder == nil {
			w.holder = c
			if _, err := c.Await(ctx, "acquired", time.Time{}); err != nil {
				return err
			}
		}
	}
	time.Sleep(50 * time.Millisecond) // the waiter's statement is on its way
	return nil
}

func (w *waiters) count(b *bench) int {
	n := 0
	for _, c := range b.children {
		if c.kind == "child-waiter" {
			n++
		}
	}
	return n
}

func bareKill(ctx context.Context, b *bench, w *waiters) (limit, error) {
	if err := w.gather(ctx, b); err != nil {
		return limit{}, err
	}
	begun := time.Now()
	b.kill(w.holder)
	return w.next(ctx, b, begun)
}

// next waits for the next holder.
func (w *waiters) next(ctx context.Context, b *bench, begun time.Time) (limit, error) {
	holder, at, err := b.successor(ctx, "child-waiter", begun)
	if err != nil {
		return limit{}, err
	}
	w.holder = holder
	terms, err := holder.Await(ctx, "begun", begun)
	return limit{at.Sub(begun), terms.Time().Sub(begun)}, err
}

func bareRelease(ctx context.Context, b *bench, w *waiters) (limit, error) {
	if err := w.gather(ctx, b); err != nil {
		return limit{}, err
	}
	before := time.Now()
	if err := w.holder.Say("release"); err != nil {
		return limit{}, err
	}
	fault, err := w.holder.Await(ctx, "fault", before)
	if err != nil {
		return limit{}, fmt.Errorf("release: %w", err)
	}
	return w.next(ctx, b, fault.Time())
}
