package records

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres/internal/link"
)

// After the end of its lease a node leads nothing, whatever its rows contain.
const readLeaders = `
SELECT
    role,
    term,
    node_id,
    node_name,
    hostname,
    acquired_at,
    lease_until,
    (1000 * extract(epoch FROM lease_until - clock_timestamp()))::double precision,
    ip_address,
    http_port,
    grpc_port,
    labels,
    agent
FROM {leaders}
WHERE (cardinality($1::text[]) = 0 OR role = ANY ($1)) AND lease_until > clock_timestamp()
ORDER BY role COLLATE "C"`

// Leaders is the method of the backend with this name.
func (rs *Records) Leaders(ctx context.Context, roles ...string) ([]tenure.Leader, error) {
	var leaders []tenure.Leader
	err := rs.Reader.Ask(ctx, "read leaders", func(ctx context.Context, conn *pgx.Conn) error {
		readAt := time.Now() // before the query: this may only shorten the lease
		rows, err := conn.Query(ctx, rs.Names.SQL(readLeaders), append([]string{}, roles...))
		if err != nil {
			return err
		}
		labels := map[uuid.UUID]map[string]string{} // decoded once for each node
		leaders, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (tenure.Leader, error) {
			var (
				l       = tenure.Leader{ReadAt: readAt}
				valid   float64
				encoded []byte
			)
			err := row.Scan(&l.Role, &l.Term, &l.NodeID, &l.NodeName, &l.Host, &l.AcquiredAt, &l.LeaseUntil, &valid,
				&l.Address, &l.HTTPPort, &l.GRPCPort, &encoded, &l.Agent)
			l.ValidFor = link.FromMilliseconds(valid)
			known, ok := labels[l.NodeID]
			if !ok && err == nil {
				err = json.Unmarshal(encoded, &known)
				labels[l.NodeID] = known
			}
			l.Labels = known
			return l, err
		})
		return err
	})
	return leaders, err
}
