package records

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
)

const readNodes = `
SELECT id, name, hostname
FROM {nodes}
WHERE status <> 'dead' AND last_heartbeat + lease_ms * interval '1 millisecond' > clock_timestamp()
ORDER BY incarnation`

// Nodes is the method of the backend with this name.
func (rs *Records) Nodes(ctx context.Context) ([]tenure.NodeInfo, error) {
	var nodes []tenure.NodeInfo
	err := rs.Reader.Ask(ctx, "read nodes", func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, rs.Names.SQL(readNodes))
		if err != nil {
			return err
		}
		nodes, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (tenure.NodeInfo, error) {
			var n tenure.NodeInfo
			err := row.Scan(&n.ID, &n.Name, &n.Host)
			return n, err
		})
		return err
	})
	return nodes, err
}
