//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"
)

// split leaves the old primary alive and writable: its Patroni is stopped, and it is
// cut off from etcd. A standby is promoted, and a node joins that knows the other
// servers only, or HAProxy.
func split(ctx context.Context, b *bed, primary, _ *server) (func(context.Context) error, error) {
	patroni := primary.patroni.Process
	heal := func(ctx context.Context) error {
		b.box.NoteStopped()
		err := patroni.Signal(syscall.SIGCONT)
		if b.network.hasNamespaces() {
			err = errors.Join(err, b.network.Find(ctx, primary.index, b.network.etcdAddress()))
		}
		return err
	}
	b.box.NoteStopped(patroni.Pid)
	if err := patroni.Signal(syscall.SIGSTOP); err != nil {
		return heal, err
	}
	if b.network.hasNamespaces() {
		if err := b.network.Lose(ctx, primary.index, b.network.etcdAddress()); err != nil {
			return heal, err
		}
	}
	if err := b.await(ctx, longestHold, "no standby was promoted", func() bool { return !b.promotedAfter(primary, b.faultAt).IsZero() }); err != nil {
		return heal, errors.Join(err, heal(context.WithoutCancel(ctx)))
	}
	dsn := b.nodesDSN()
	if b.proxy == nil {
		dsn = b.hosts(slices.DeleteFunc(slices.Clone(b.servers), func(s *server) bool { return s == primary })...)
	}
	b.addedNodes++
	return heal, b.spawn(ctx, fmt.Sprintf("guest-%d", b.addedNodes), dsn)
}

// promotedAfter is when another server than the old primary first acknowledged a
// write after a moment.
func (b *bed) promotedAfter(old *server, since time.Time) (at time.Time) {
	for i, p := range b.probes {
		if b.servers[i] == old {
			continue
		}
		for _, interval := range p.intervals() {
			if interval.From.After(since) && (at.IsZero() || interval.From.Before(at)) {
				at = interval.From
			}
		}
	}
	return at
}

// untilNextTerm waits until another term has begun.
func untilNextTerm(ctx context.Context, b *bed, since time.Time) error {
	return b.await(ctx, longestHold, "no term began while the fault lasted", func() bool {
		_, found := b.termAfter(since)
		return found
	})
}

// untilSplitIsSeen waits until the next term has lasted for a while beside the old
// primary, or, if FailoverWait is to cover the split, for half of that time.
func untilSplitIsSeen(ctx context.Context, b *bed, since time.Time) error {
	lasts := time.Second
	if b.failoverWait > 2*b.lease {
		lasts = (b.failoverWait - b.lease) / 2
	} else if err := untilNextTerm(ctx, b, since); err != nil {
		return err
	}
	select {
	case <-time.After(lasts):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// judgeSplit records where a split differs from the documents: in asynchronous mode
// two nodes lead, unless FailoverWait covers the split, or HAProxy ends the sessions
// on the old primary.
func (b *bed) judgeSplit(r *round) {
	covered := b.synchronous || b.endSessions || b.failoverWait > 2*b.lease
	switch {
	case r.Split == 0 && !b.synchronous:
		r.Violation = "the fault is to leave two servers that acknowledge writes"
	case covered && r.BothTrust > 0:
		r.Violation = fmt.Sprintf("two nodes trusted their terms for %.0f ms; documented is that none do", r.BothTrust)
	case !covered && r.BothTrust == 0:
		r.Violation = "no two nodes trusted their terms; documented is that two do"
	}
}

// closeAddedNodes kills the nodes that a fault has added.
func (b *bed) closeAddedNodes() {
	for len(b.nodes) > members {
		guest := b.nodes[members]
		b.nodes, b.former = slices.Delete(b.nodes, members, members+1), append(b.former, guest)
		guest.Kill()
		guest.trustEnds = time.Now().Add(b.lease)
	}
}
