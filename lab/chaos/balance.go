//go:build linux

package main

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

const (
	balanceInterval = 500 * time.Millisecond
	mostMoves       = 5 // in an interval
	requestLimit    = 2 * time.Second
)

// balance has roles handed over from nodes that lead many to nodes that lead few,
// while a run lasts: the first node that is back after a fault of the server leads
// all roles, and then a fault of any other node would show nothing. Nodes with a
// fault are left alone.
func (b *bed) balance(ctx context.Context) {
	for pause(ctx, balanceInterval) == nil {
		for _, request := range b.moves() {
			once, cancel := context.WithTimeout(ctx, requestLimit)
			_ = b.backend.Request(once, request) // the server may have a fault; there is a next time
			cancel()
		}
	}
}

// moves lists the hand-overs that make the numbers of roles more equal.
func (b *bed) moves() []tenure.Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	roles := map[*member][]string{}
	var able []*member
	for _, m := range b.members {
		if m.connected && m.id != uuid.Nil && len(m.turn) == 0 {
			able = append(able, m)
			for role := range m.leads {
				roles[m] = append(roles[m], role)
			}
			slices.Sort(roles[m])
		}
	}
	var all []tenure.Request
	fewer := func(a, b *member) int { return len(roles[a]) - len(roles[b]) }
	for len(able) > 1 && len(all) < mostMoves {
		from, to := slices.MaxFunc(able, fewer), slices.MinFunc(able, fewer)
		if len(roles[from]) < len(roles[to])+2 {
			break
		}
		last := len(roles[from]) - 1
		all = append(all, tenure.Request{Kind: tenure.RequestHandOver, Role: roles[from][last], Target: to.id, By: requester})
		roles[to] = append(roles[to], roles[from][last])
		roles[from] = roles[from][:last]
	}
	return all
}
