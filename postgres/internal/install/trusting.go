package install

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/postgres/internal/link"
)

// Nodes with a session ended without a record, as in a crash of the server. Until their
// leases are over they may trust their terms. Another mode or a new installation knows
// nothing of these terms.
const readTrustingNodes = `
SELECT name, hostname, ceil(extract(epoch FROM last_heartbeat + lease_ms * interval '1 millisecond' - clock_timestamp()))::int
FROM {nodes}
WHERE status <> 'dead' AND last_heartbeat + lease_ms * interval '1 millisecond' > clock_timestamp()
ORDER BY name`

// trustingNodes lists the nodes of readTrustingNodes. It returns none if the registry may
// not be read.
func (i *Installation) trustingNodes(ctx context.Context, on link.Querier) ([]string, error) {
	var readable bool
	err := on.QueryRow(ctx, mayReadNodes, i.Names.SQL("{nodes}"), i.Names.SQL("{installation}")).Scan(&readable)
	if err != nil || !readable {
		return nil, err
	}
	rows, err := on.Query(ctx, i.Names.SQL(readTrustingNodes))
	if err != nil {
		return nil, fmt.Errorf("look for nodes that trust their terms: %w", err)
	}
	trusting, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		var (
			node, host string
			seconds    int
		)
		err := row.Scan(&node, &host, &seconds)
		return fmt.Sprintf("node %q on %q for another %d s", node, host, seconds), err
	})
	if err != nil {
		return nil, fmt.Errorf("look for nodes that trust their terms: %w", err)
	}
	return trusting, nil
}
