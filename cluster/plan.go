package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster/internal/placement"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// spreadStore is a [Store] that stores the definitions of spreads, as JSON, for planning
// callers other than members.
type spreadStore interface {
	SaveSpread(ctx context.Context, name string, roles []byte, by uuid.UUID) error
	Spreads(ctx context.Context) (map[string][]byte, error)
}

// roleDefinition is the stored form of a spread's role.
type roleDefinition struct {
	Role          string            `json:"role"`
	Requires      map[string]string `json:"requires,omitempty"`
	Prefers       map[string]string `json:"prefers,omitempty"`
	PreferredNode string            `json:"preferred_node,omitempty"`
}

func encodeRoles(places []placement.Role) ([]byte, error) {
	definitions := make([]roleDefinition, len(places))
	for i, place := range places {
		definitions[i] = roleDefinition{place.Name, place.Requires, place.Prefers, place.PreferredNode}
	}
	return json.Marshal(definitions)
}

func decodeRoles(document []byte) ([]placement.Role, error) {
	var definitions []roleDefinition
	if err := json.Unmarshal(document, &definitions); err != nil {
		return nil, err
	}
	places := make([]placement.Role, len(definitions))
	for i, d := range definitions {
		places[i] = placement.Role{Name: d.Role, Requires: d.Requires, Prefers: d.Prefers, PreferredNode: d.PreferredNode}
	}
	return places, nil
}

// saveDefinition stores the definition of the spread, retrying until it
// succeeds or the context ends. Members do not depend on it.
func (s *Spread) saveDefinition(ctx context.Context) {
	store, ok := s.member.store.(spreadStore)
	if !ok {
		return
	}
	node := s.member.node
	document, err := encodeRoles(s.placementRoles)
	for err == nil && ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, leaveTimeout)
		failed := store.SaveSpread(limited, s.name, document, node.ID())
		cancel()
		if failed == nil {
			return
		}
		if ctx.Err() == nil {
			node.Logger().Warn("saving the definition of shared roles failed", "spread", s.name, "error", failed)
		}
		wakeup.AwaitOn(ctx, node.Clock(), node.Timing().CheckInterval, nil)
	}
}

// readDefinitions reads the definitions of the named spreads, or of all if
// there are no names.
func readDefinitions(ctx context.Context, store Store, names []string) (map[string][]placement.Role, error) {
	keeper, ok := store.(spreadStore)
	if !ok {
		return nil, fmt.Errorf("%w: it stores no definitions of shared roles", tenure.ErrUnsupported)
	}
	documents, err := keeper.Spreads(ctx)
	if err != nil {
		return nil, err
	}
	definitions := map[string][]placement.Role{}
	for name, document := range documents {
		if definitions[name], err = decodeRoles(document); err != nil {
			return nil, fmt.Errorf("the definition of the spread %q cannot be read: %w", name, err)
		}
	}
	if len(names) == 0 {
		return definitions, nil
	}
	chosen := map[string][]placement.Role{}
	for _, name := range names {
		roles, known := definitions[name]
		if !known {
			return nil, fmt.Errorf("%w: no node has shared roles under the name %q", ErrUnknownSpread, name)
		}
		chosen[name] = roles
	}
	return chosen, nil
}
