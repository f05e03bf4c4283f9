package records

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres/internal/link"
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

	// The status of the node w.target in the registry, or its requested status; no row if
	// it is not live.
	statusOfTarget = `
SELECT CASE
    WHEN EXISTS (SELECT FROM {requests} r WHERE r.node_id = n.id AND r.kind = 'drain') THEN 'draining'
    ELSE n.status
END
FROM {nodes} n
WHERE n.id = w.target
    AND n.status <> 'dead'
    AND n.last_heartbeat + n.lease_ms * interval '1 millisecond' > clock_timestamp()`

	// Addressed to the current leader: the request is not for a successor.
	insertRequest = `
WITH request AS (
    INSERT INTO {requests} (kind, role, term, node_id, target, requested_by)
    SELECT $2, l.role, l.term, l.node_id, $3, $4
    FROM {leaders} l
    WHERE l.role = $1 AND l.lease_until > clock_timestamp() AND $6::bigint IN (0, l.term)
    RETURNING id
)
SELECT pg_notify($5, '` + link.RolesOnly + `') FROM request`

	// LockRequests locks the table of requests.
	//
	// Two requesters draining the last two nodes must not both find the other node
	// active. This lock mode conflicts only with itself: no session waits for a
	// requester.
	LockRequests = `LOCK TABLE {requests} IN SHARE UPDATE EXCLUSIVE MODE`

	// Whether another node is active and has no request to drain.
	findAnother = `
SELECT EXISTS (
    SELECT
    FROM {nodes} n
    WHERE n.id <> $1
        AND n.status = 'active'
        AND n.last_heartbeat + n.lease_ms * interval '1 millisecond' > clock_timestamp()
        AND NOT EXISTS (SELECT FROM {requests} r WHERE r.node_id = n.id AND r.kind = 'drain')
)`

	insertNodeRequest = `
INSERT INTO {requests} (kind, role, term, node_id, target, force, requested_by)
VALUES ($1, '', 0, $2, $3, $4, $5)`
)

// Request is the method of the backend with this name.
func (rs *Records) Request(ctx context.Context, request tenure.Request) error {
	if !utf8.ValidString(request.By) || strings.ContainsRune(request.By, 0) {
		return invalidRequest("requester %q must be valid UTF-8 without NUL", request.By)
	}
	if request.Kind == tenure.RequestDrain || request.Kind == tenure.RequestUndrain {
		return rs.requestOfNode(ctx, request)
	}
	if err := tenure.NamedRole(request.Role).Validate(); err != nil {
		return err
	}
	var target *uuid.UUID
	switch request.Kind {
	case tenure.RequestStepDown:
	case tenure.RequestHandOver:
		target = &request.Target
		if err := rs.offerRole(ctx, request); err != nil || request.Offer {
			return err
		}
	default:
		return invalidRequest("the request %q is unknown", request.Kind)
	}
	return rs.Reader.Ask(ctx, "request", func(ctx context.Context, conn *pgx.Conn) error {
		err := conn.QueryRow(ctx, rs.Names.SQL(insertRequest),
			request.Role, string(request.Kind), target, request.By, rs.Names.ElectionsChannel(), request.Term).Scan(nil)
		if errors.Is(err, pgx.ErrNoRows) {
			return tenure.ErrNoLeader
		}
		return err
	})
}

// requestOfNode records a request for a node.
func (rs *Records) requestOfNode(ctx context.Context, request tenure.Request) error {
	return rs.Reader.Ask(ctx, "request", func(ctx context.Context, conn *pgx.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, rs.Names.SQL(LockRequests)); err != nil {
				return err
			}
			alive := func(query string, node uuid.UUID, missing error) error {
				var found bool
				err := tx.QueryRow(ctx, rs.Names.SQL(query), node).Scan(&found)
				if err == nil && !found {
					err = missing
				}
				return err
			}
			if err := alive(findNode, request.Node, tenure.ErrUnknownNode); err != nil {
				return err
			}
			var target *uuid.UUID
			if request.Target != uuid.Nil {
				target = &request.Target
				if err := alive(findNode, request.Target, tenure.ErrUnknownNode); err != nil {
					return err
				}
			}
			if request.Kind == tenure.RequestDrain && !request.Force {
				if err := alive(findAnother, request.Node, tenure.ErrLastNode); err != nil {
					return err
				}
			}
			_, err := tx.Exec(ctx, rs.Names.SQL(insertNodeRequest), string(request.Kind), request.Node, target, request.Force, request.By)
			if err != nil {
				return err
			}
			_, err = tx.Exec(ctx, link.Notify, rs.Names.ElectionsChannel(), link.RolesOnly)
			return err
		})
	})
}

// invalidRequest reports a request impossible for every node.
func invalidRequest(format string, args ...any) error {
	return fmt.Errorf("%w: %s", tenure.ErrInvalidConfig, fmt.Sprintf(format, args...))
}
