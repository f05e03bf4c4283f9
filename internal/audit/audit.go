// Package audit reads the changes of an installation with their authors: operators'
// requests for roles and nodes, and their changes of schedules, processors and alerts.
package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/features"
	"github.com/exactly-one/tenure/internal/schema"
)

// Entry is one action of an operator.
type Entry struct {
	At     time.Time
	By     string // the requester
	Kind   string // role, node, schedule, processor, alert or cluster
	Name   string // of the role, node, schedule, processor, alert or cluster
	Action string
	Detail string
	Done   bool // false: it was requested, and no effect is on record
	Failed bool // what was requested has failed
}

// The records of roles and nodes have the effects, with the requester of each. A request
// of the dashboard is shown only without a recorded effect: it was made, and the leader or
// node has not done it. The ends of terms by a drain of their node are part of the drain.
const (
	readEffects = `
WITH ended AS (
    SELECT ended_at AS at, ended_by AS by, role, term, node_id, node_name, end_reason
    FROM {history}
    WHERE ended_by <> '' AND end_reason IN ('stepped_down', 'handed_over')
    UNION ALL
    SELECT ended_at, ended_by, role, term, node_id, node_name, end_reason
    FROM {terms}
    WHERE ended_at IS NOT NULL AND ended_by <> '' AND end_reason IN ('stepped_down', 'handed_over')
), drained AS (
    SELECT at, changed_by AS by, node_id, node_name, CASE status WHEN 'draining' THEN 'drain' ELSE 'undrain' END AS action
    FROM {node_history}
    WHERE changed_by <> ''
        AND (status = 'draining' AND previous <> 'draining' OR status = 'active' AND previous = 'draining')
), actions AS (
    SELECT at, by, 'role' AS kind, role AS name,
        CASE end_reason WHEN 'stepped_down' THEN 'step_down' ELSE 'hand_over' END AS action,
        'term ' || term || ' of ' || node_name AS detail, true AS done, false AS failed
    FROM ended e
    WHERE NOT EXISTS (
        SELECT FROM drained d
        WHERE d.action = 'drain' AND d.node_id = e.node_id AND d.by = e.by AND d.at <= e.at AND e.at < d.at + interval '10 minutes'
    )
    UNION ALL
    SELECT at, by, 'node', node_name, action, node_id::text, true, false
    FROM drained`

	readChanges = `
    UNION ALL
    SELECT c.at, c.changed_by, c.kind, coalesce(n.name, c.name), c.action, c.detail, c.kind NOT IN ('role', 'node') OR c.action = 'forget', c.action = 'replay_failed'
    FROM {changes} c
    LEFT JOIN {nodes} n ON c.kind = 'node' AND n.id::text = c.name
    WHERE NOT (c.kind = 'role' AND EXISTS (
            SELECT FROM ended e
            WHERE e.role = c.name AND e.by = c.changed_by
                AND e.end_reason = CASE c.action WHEN 'step_down' THEN 'stepped_down' ELSE 'handed_over' END
                AND e.at > c.at - interval '1 minute' AND e.at < c.at + interval '2 minutes'
        ))
        AND NOT (c.kind = 'node' AND EXISTS (
            SELECT FROM drained d
            WHERE d.node_id::text = c.name AND d.by = c.changed_by AND d.action = c.action
                AND d.at > c.at - interval '1 minute' AND d.at < c.at + interval '2 minutes'
        ))`

	readLatest = `
)
SELECT at, by, kind, name, action, detail, done, failed
FROM actions
WHERE $2 IN ('', name)
ORDER BY at DESC, kind, name COLLATE "C"
LIMIT $1`
)

// Read returns the latest actions, at most limit, the latest first: those on objects with
// a name, or all if it is empty. The backend is a *postgres.Backend, and database is where
// its schema is.
func Read(ctx context.Context, backend any, database schema.Querier, name string, limit int) ([]Entry, error) {
	tables := schema.Of(backend)
	template := readEffects
	exist, err := tables.Has(ctx, database, features.Changes)
	if err != nil {
		return nil, fmt.Errorf("read the actions of operators: %w", err)
	}
	if exist {
		template += readChanges
	}
	rows, _ := database.Query(ctx, tables.SQL(template+readLatest), limit, name)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Entry])
	if err != nil {
		return nil, fmt.Errorf("read the actions of operators: %w", err)
	}
	return all, nil
}

const record = `
INSERT INTO {changes} (changed_by, kind, name, action, detail)
VALUES ($1, $2, $3, $4, $5)`

// Record records an action of an operator that no other table has. The backend is a
// *postgres.Backend, and database is where its schema is.
func Record(ctx context.Context, backend any, database schema.Querier, action Entry) error {
	tables := schema.Of(backend)
	if err := tables.Ensure(ctx, database, features.Changes); err != nil {
		return fmt.Errorf("record the action: %w", err)
	}
	rows, _ := database.Query(ctx, tables.SQL(record), action.By, action.Kind, action.Name, action.Action, action.Detail)
	rows.Close()
	if err := rows.Err(); err != nil {
		return fmt.Errorf("record the action: %w", err)
	}
	return nil
}
