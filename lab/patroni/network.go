//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/netns"
	"github.com/exactly-one/tenure/internal/sandbox"
)

// network joins the members, etcd and the nodes. With namespaces each member has a
// separate address in a separate namespace, behind one bridge. Without them all
// share the loopback address, and the members reach one another's PostgreSQL
// through proxies.
type network struct {
	*netns.Network                    // nil without namespaces
	proxies        []*faultwire.Proxy // of the members, without namespaces
}

// newNetwork makes the namespaces if the kernel lets it, or says why it does not.
func newNetwork(ctx context.Context, members int) *network {
	namespaces, err := netns.New(ctx, members)
	if err != nil {
		fmt.Printf("No network namespaces (%v): the replication links are cut by TCP proxies, and faults that need namespaces are left out.\n", err)
	}
	return &network{Network: namespaces}
}

func (n *network) hasNamespaces() bool { return n.Network != nil }

// address is that of a member.
func (n *network) address(i int) string {
	if !n.hasNamespaces() {
		return sandbox.Host
	}
	return n.Address(i)
}

// etcdAddress is not the address that nodes connect from, so that a member can
// be cut off from the one and not from the other.
func (n *network) etcdAddress() string {
	if !n.hasNamespaces() {
		return sandbox.Host
	}
	return n.Host(1)
}

// within returns the words that run a command in the namespace of a member.
func (n *network) within(i int) []string {
	if !n.hasNamespaces() {
		return nil
	}
	return n.Within(i)
}

// cutFromMembers loses all packets between a member and the others.
func (n *network) cutFromMembers(ctx context.Context, i, members int) error {
	if !n.hasNamespaces() {
		n.proxies[i].Stall()
		return nil
	}
	for other := range members {
		if other == i {
			continue
		}
		if err := errors.Join(n.Lose(ctx, i, n.address(other)), n.Lose(ctx, other, n.address(i))); err != nil {
			return err
		}
	}
	return nil
}

func (n *network) joinMembers(ctx context.Context, i, members int) error {
	if !n.hasNamespaces() {
		n.proxies[i].Resume()
		return nil
	}
	var failed error
	for other := range members {
		if other != i {
			failed = errors.Join(failed, n.Find(ctx, i, n.address(other)), n.Find(ctx, other, n.address(i)))
		}
	}
	return failed
}

func (n *network) close() error {
	for _, proxy := range n.proxies {
		_ = proxy.Close() // it no longer listens, and nothing else is needed
	}
	if !n.hasNamespaces() {
		return nil
	}
	return n.Close()
}
