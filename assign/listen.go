package assign

import (
	"context"

	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres"
)

// topic is notified when rows of the table may wait or a node has capacity.
func (c Config) topic() string { return "assign " + c.Table.Sanitize() }

// nodeTopic is notified when rows were assigned to a node.
func nodeTopic(node string) string { return "assigned " + node }

// Listen calls wake, in this goroutine, whenever rows of any table were
// assigned to a node, and once when it has started to listen. It uses its own
// connection. It returns nil when ctx ends, and an error when it can no longer
// listen. Notifications can be lost, so also poll from time to time.
func Listen(ctx context.Context, backend *postgres.Backend, node cluster.NodeID, wake func()) error {
	return schema.Of(backend).Listen(ctx, nodeTopic(node.String()), wake)
}
