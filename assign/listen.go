package assign

import (
	"context"

	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/postgres"
)

// topic is what is told when rows of the table may wait, or places are free.
func (c Config) topic() string { return "assign " + c.Table.Sanitize() }

// nodeTopic is what is told when a node was given rows.
func nodeTopic(node string) string { return "assigned " + node }

// Listen calls wake, in this goroutine, whenever rows of any table were assigned
// to a node, and once when it has begun to listen. It uses a connection of its
// own. It returns nil when the context ends, and an error when it cannot listen
// any more; news can be lost, so look now and then besides.
func Listen(ctx context.Context, backend *postgres.Backend, node cluster.NodeID, wake func()) error {
	return backend.ListenTo(ctx, nodeTopic(node.String()), wake)
}
