package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
)

const (
	findNode = `
SELECT EXISTS (
    SELECT
    FROM {nodes}
    WHERE id = $1
        AND status <> 'dead'
        AND last_heartbeat + lease_ms * interval '1 millisecond' > clock_timestamp()
)`

	// Addressed to the leader of this moment: a successor was not meant.
	insertRequest = `
WITH request AS (
    INSERT INTO {requests} (kind, role, term, node_id, target, requested_by)
    SELECT $2, l.role, l.term, l.node_id, $3, $4
    FROM {leaders} l
    WHERE l.role = $1 AND l.lease_until > clock_timestamp()
    RETURNING id
)
SELECT pg_notify($5, '') FROM request`
)

// Request implements [tenure.Backend].
func (b *Backend) Request(ctx context.Context, request tenure.Request) error {
	if err := tenure.NamedRole(request.Role).Validate(); err != nil {
		return err
	}
	var target *uuid.UUID
	switch request.Kind {
	case tenure.RequestStepDown:
	case tenure.RequestHandOver:
		target = &request.Target
	default:
		return invalid("the request %q is unknown", request.Kind)
	}
	return b.reader.ask(ctx, "request", func(ctx context.Context, conn *pgx.Conn) error {
		if target != nil {
			var alive bool
			if err := conn.QueryRow(ctx, b.names.sql(findNode), target).Scan(&alive); err != nil {
				return err
			}
			if !alive {
				return tenure.ErrUnknownNode
			}
		}
		err := conn.QueryRow(ctx, b.names.sql(insertRequest),
			request.Role, string(request.Kind), target, request.By, b.names.channel()).Scan(nil)
		if errors.Is(err, pgx.ErrNoRows) {
			return tenure.ErrNoLeader
		}
		return err
	})
}
