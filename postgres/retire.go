package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
)

// The number shows whether a term has begun in the meantime, which the update waits
// for.
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

// Retire marks a role as retired: it is no longer shown as vacant, and no alert
// fires because it has no leader. Its terms and their numbers stay, and if a node
// leads the role again, it is a role like any other. by is the requester.
//
// Retire returns an error that matches dberr.ErrHasLeader if a node leads the role, and
// dberr.ErrUnknownRole if no node has ever been a candidate for it here.
func (b *Backend) Retire(ctx context.Context, role, by string) error {
	if err := tenure.NamedRole(role).Validate(); err != nil {
		return err
	}
	return b.reader.Ask(ctx, "retire a role", func(ctx context.Context, conn *pgx.Conn) error {
		rows, _ := conn.Query(ctx, b.names.SQL(retireRole), role, by) // its error is that of the rows
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
