package server

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent/internal/wire"
)

// query answers a call without a session.
func (s *server) query(call wire.Call) wire.Answer {
	ctx, cancel := context.WithTimeout(s.ctx, queryTimeout)
	defer cancel()
	var answer wire.Answer
	var err error
	switch {
	case call.Op == wire.OpLeaders:
		answer.Leaders, err = s.leaders(ctx, call.Roles)
	case call.Op == wire.OpRequest && call.Request != nil:
		err = s.request(ctx, *call.Request)
	default:
		err = fmt.Errorf("%w: the agent does not know %q", tenure.ErrUnsupported, call.Op)
	}
	answer.Err = wire.NewError(err)
	return answer
}

func (s *server) published() *host {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.host
}

// leaders reads the leaders and names the nodes of this host.
func (s *server) leaders(ctx context.Context, roles []string) ([]tenure.Leader, error) {
	leaders, err := s.cfg.Backend.Leaders(ctx, roles...)
	h := s.published()
	if err != nil || h == nil {
		return leaders, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range leaders {
		l := &leaders[i]
		l.ValidFor -= time.Since(l.ReadAt) // the node counts from before it asked
		held := h.held[l.Role]
		if l.NodeID == h.node && held != nil && held.term == l.Term {
			node, reach := held.client.node, held.client.opened
			l.NodeID, l.NodeName, l.Host = node.ID, node.Name, node.Host
			l.Address, l.HTTPPort, l.GRPCPort, l.Labels = reach.Address, reach.HTTPPort, reach.GRPCPort, reach.Labels
		}
	}
	return leaders, nil
}

// request passes a request on: within the host directly, otherwise through the database.
// The database knows only the agent.
func (s *server) request(ctx context.Context, r tenure.Request) error {
	if h := s.published(); h != nil {
		done, err := h.requestHere(&r)
		if done {
			return err
		}
	}
	return s.cfg.Backend.Request(ctx, r)
}

// requestHere delivers a request between nodes of this host. Otherwise it replaces
// a target of this host by the agent.
func (h *host) requestHere(r *tenure.Request) (done bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.Role == "" {
		if h.clients[r.Node] != nil {
			return true, fmt.Errorf("%w: a node of an agent cannot be drained: it is not in the registry", tenure.ErrUnsupported)
		}
		return false, nil
	}
	local := h.clients[r.Target] != nil
	if r.Offer && local {
		return true, nil // the agent does not know which roles its nodes campaign for
	}
	if held := h.held[r.Role]; held != nil && r.Term != 0 && r.Term != held.term {
		return true, fmt.Errorf("%w: %s", tenure.ErrNoLeader, r.Role)
	}
	if local || r.Target == uuid.Nil {
		here := *r
		here.At = time.Now()
		if h.deliverLocked(here) {
			return true, nil
		}
	}
	if local {
		r.Target = h.node
	}
	return false, nil
}
