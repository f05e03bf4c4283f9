package roles

import (
	"context"
	"errors"
	"fmt"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/nearest"
	"github.com/exactly-one/tenure/internal/program/roster"
	"github.com/exactly-one/tenure/postgres"
)

// requireRoles returns an error for the first role given by its name alone, if no node
// has ever been a candidate for it: a mistyped name is no vacancy.
func requireRoles(ctx context.Context, backend connect.Backend, roles ...tenure.Role) error {
	for _, role := range roles {
		if role != tenure.NamedRole(role.Name()) {
			continue // a key may be that of another program
		}
		terms, err := backend.History(ctx, history.Query{Role: role.Name(), Limit: 1})
		if err != nil || len(terms) > 0 {
			return err
		}
		held, err := backend.Holders(ctx, role)
		if err != nil || len(held) > 0 && (held[0].Leader != nil || len(held[0].Sessions) > 0) {
			return err
		}
		return unknownRole(ctx, backend, role.Name(), fmt.Errorf("%w: %s", dberr.ErrUnknownRole, role))
	}
	return nil
}

// requireNode returns an error for a node without a trace in the history and the
// registry.
func requireNode(ctx context.Context, backend connect.Backend, node string) error {
	query := history.Query{Node: node, Limit: 1}
	terms, err := backend.History(ctx, query)
	if err != nil || len(terms) > 0 {
		return err
	}
	sessions, ok := backend.(*postgres.Backend)
	if !ok {
		nodes, err := backend.Nodes(ctx)
		if err != nil {
			return err
		}
		for _, known := range nodes {
			if known.Name == node || known.ID.String() == node {
				return nil
			}
		}
		return unknownNode(node, nodes)
	}
	changes, err := sessions.NodeHistory(ctx, query)
	if err != nil || len(changes) > 0 {
		return err
	}
	found, err := roster.Read(ctx, sessions)
	if err != nil {
		return err
	}
	_, err = found.Find(node, roster.Alive)
	var ambiguous *roster.AmbiguousError
	if errors.As(err, &ambiguous) {
		return nil
	}
	return err
}

// unknownRole is the error for a role unknown to the database.
func unknownRole(ctx context.Context, backend connect.Backend, role string, cause error) error {
	known, err := backend.Holders(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, holder := range known {
		names = append(names, holder.Role)
	}
	if meant := nearest.Of(role, names); meant != "" {
		return console.Usage("%w; did you mean %q?", cause, meant)
	}
	return console.Usage("%w", cause)
}

// unknownNode returns the error for an unknown node, with a suggestion.
func unknownNode(wanted string, nodes []tenure.NodeInfo) error {
	var names []string
	for _, node := range nodes {
		names = append(names, node.Name)
	}
	if meant := nearest.Of(wanted, names); meant != "" {
		return fmt.Errorf("%w: %q; did you mean %q?", tenure.ErrUnknownNode, wanted, meant)
	}
	return fmt.Errorf("%w: %q", tenure.ErrUnknownNode, wanted)
}
