package leaderwatch

import (
	"context"
	"fmt"

	"github.com/exactly-one/tenure"
)

// OfBackend returns a source for programs without a node.
func OfBackend(backend tenure.Backend, role string) Source {
	source := Source{Read: func(ctx context.Context) (tenure.Leader, error) {
		leaders, err := backend.Leaders(ctx, role)
		if err == nil && len(leaders) == 0 {
			err = fmt.Errorf("%w: %s", tenure.ErrNoLeader, role)
		}
		if err != nil {
			return tenure.Leader{}, err
		}
		return leaders[0], nil
	}}
	if listener, ok := backend.(tenure.Listener); ok {
		source.Listen = listener.Listen
	}
	return source
}
