package records

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
)

// The number shows whether a term has begun while the update waited for its row.
const retireRole = `
WITH seen AS MATERIALIZED (
    SELECT
        t.role,
        t.term,
        coalesce((SELECT l.node_name FROM {leaders} l WHERE l.role = t.role AND l.lease_until > clock_timestamp()), '') AS leader
    FROM {terms} t
    WHERE t.role = $1
), retired AS (
    UPDATE {terms} t
    SET retired_at = clock_timestamp(), retired_by = $2
    FROM seen
    WHERE t.role = seen.role AND t.term = seen.term AND seen.leader = ''
    RETURNING t.role
)
SELECT seen.leader, EXISTS (SELECT FROM retired) FROM seen`

// Retire is the method of the backend with this name.
func (rs *Records) Retire(ctx context.Context, role, by string) error {
	if err := tenure.NamedRole(role).Validate(); err != nil {
		return err
	}
	return rs.Reader.Ask(ctx, "retire a role", func(ctx context.Context, conn *pgx.Conn) error {
		rows, _ := conn.Query(ctx, rs.Names.SQL(retireRole), role, by) // its error is that of the rows
		var (
			leader  string
			retired bool
			known   bool
		)
		_, err := pgx.ForEachRow(rows, []any{&leader, &retired}, func() error {
			known = true
			return nil
		})
		switch {
		case err != nil || retired:
			return err
		case !known:
			return fmt.Errorf("%w: %s", dberr.ErrUnknownRole, role)
		case leader == "":
			return fmt.Errorf("%w: a term of %s has just begun", dberr.ErrHasLeader, role)
		default:
			return fmt.Errorf("%w: %s leads %s; stop its candidates first", dberr.ErrHasLeader, leader, role)
		}
	})
}
