package install

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// CorrectTimes corrects the times of nodes.
//
// A heartbeat more than a lease ahead was written while the clock was ahead, as was
// everything computed from it. It happened at the latest now, so it becomes now: nothing
// counted from it ends earlier than without the correction, and nothing waits for the
// false time. A process can trust an earlier session of a node for no longer than the
// longest lease.
//
// clock_timestamp is called again for a row changed since it was read. A row locked by
// another transaction is skipped: it may be a heartbeat.
const CorrectTimes = `
UPDATE {nodes} n
SET last_heartbeat = least(n.last_heartbeat, clock_timestamp()),
    died_at = CASE WHEN n.died_at IS NOT NULL THEN least(n.died_at, clock_timestamp()) END, -- least ignores nulls
    trust_until = CASE WHEN n.trust_until IS NOT NULL THEN least(n.trust_until, clock_timestamp() + longest.lease) END
FROM (SELECT max(lease_ms) * interval '1 millisecond' AS lease FROM {nodes}) longest
WHERE n.id IN (
    SELECT id
    FROM {nodes}
    WHERE ` + HasFalseTime + `
    FOR UPDATE SKIP LOCKED
)`

// HasFalseTime is the condition of CorrectTimes on the row of a node.
const HasFalseTime = `last_heartbeat > clock_timestamp() + lease_ms * interval '1 millisecond'
        OR trust_until > clock_timestamp() + (SELECT max(lease_ms) FROM {nodes}) * interval '2 milliseconds'`

const mayCorrectTimes = `SELECT coalesce(has_table_privilege(to_regclass($1), 'UPDATE'), false)`

// correct corrects times before a command waits for them, if the user may do it.
func (i *Installation) correct(ctx context.Context, conn *pgx.Conn) error {
	var may bool
	err := conn.QueryRow(ctx, mayCorrectTimes, i.Names.SQL("{nodes}")).Scan(&may)
	if err == nil && may { // the server can refuse a change of no row, too
		err = conn.QueryRow(ctx, i.Names.SQL(`SELECT EXISTS (SELECT FROM {nodes} WHERE `+HasFalseTime+`)`)).Scan(&may)
	}
	if err == nil && may {
		_, err = conn.Exec(ctx, i.Names.SQL(CorrectTimes))
	}
	return err
}
