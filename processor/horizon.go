package processor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Horizon is the oldest transaction of the whole database cluster that may still write.
// Its events, and those of all later transactions, are not read until it has ended,
// because earlier events may still appear. If its events wait only for the horizon, a
// processor works correctly.
type Horizon struct {
	// Transaction is the id of the oldest transaction, or the next id to be
	// assigned.
	Transaction uint64
	// Holders are the open transactions in all databases of the cluster, oldest first, at
	// most 10. Only the first one holds the horizon; when it ends, the next one does.
	Holders []OpenTransaction
}

// Age returns how long the oldest transaction has been open, or 0 if there is
// none.
func (h Horizon) Age() time.Duration {
	if len(h.Holders) == 0 {
		return 0
	}
	return h.Holders[0].Age
}

// OpenTransaction is an open transaction with an id. State, Age and Query of other users'
// sessions are visible only to members of the role pg_read_all_stats.
type OpenTransaction struct {
	Transaction uint64
	PID         int    // of its server session, for pg_terminate_backend; 0 if it is a prepared transaction
	Database    string // where it is open
	Prepared    string // the id of a prepared transaction, for ROLLBACK PREPARED; otherwise empty
	User        string
	Application string
	State       string        // of its server session, such as "idle in transaction"
	Age         time.Duration // since it began or was prepared; 0 if not visible
	Query       string        // the last query of its server session, truncated
}

// String describes the transaction in one line, and how long it has held the horizon.
func (h OpenTransaction) String() string {
	if h.Prepared != "" {
		return fmt.Sprintf("the prepared transaction %q of %s in the database %s, for %v", h.Prepared, h.User, h.Database, h.Age.Round(time.Second))
	}
	if h.State == "" {
		return fmt.Sprintf("PID %d (%q, user %s, database %s; only members of pg_read_all_stats see more)", h.PID, h.Application, h.User, h.Database)
	}
	return fmt.Sprintf("PID %d (%q, user %s, database %s, %s), for %v", h.PID, h.Application, h.User, h.Database, h.State, h.Age.Round(time.Second))
}

// Server sessions show transaction ids without the epoch; their ages show how far they are
// below the next id. An autovacuum of a single table has no id, and neither does a
// read-only session.
const readHorizon = `
WITH open AS (
    SELECT
        backend_xid AS xid,
        pid,
        coalesce(datname, '') AS database,
        '' AS prepared,
        coalesce(usename, '') AS role,
        coalesce(application_name, '') AS application,
        coalesce(state, '') AS state,
        xact_start AS since,
        CASE WHEN state IS NULL THEN '' ELSE left(query, 200) END AS query
    FROM pg_stat_activity
    WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()
    UNION ALL
    SELECT transaction, 0, database, gid, owner, '', 'prepared', prepared, ''
    FROM pg_prepared_xacts
), snapshot AS (
    SELECT pg_current_snapshot() AS taken
)
SELECT
    pg_snapshot_xmin(taken),
    oldest.transaction,
    oldest.pid,
    oldest.database::text,
    oldest.prepared,
    oldest.role::text,
    oldest.application,
    oldest.state,
    coalesce(1000 * extract(epoch FROM clock_timestamp() - oldest.since), 0)::double precision,
    oldest.query
FROM snapshot
LEFT JOIN LATERAL (
    SELECT
        (next - mod(mod(next - xid::text::numeric, 4294967296) + 4294967296, 4294967296))::text::xid8 AS transaction,
        open.*
    FROM open, (SELECT pg_snapshot_xmax(taken)::text::numeric AS next) counter
    ORDER BY transaction
    LIMIT 10
) oldest ON true`

// Horizon returns the horizon of the database cluster and its holders.
func (m *Admin) Horizon(ctx context.Context) (Horizon, error) {
	type row struct {
		horizon uint64
		holder  *OpenTransaction
	}
	rows, err := collect(ctx, m.database, "read the horizon", func(r pgx.CollectableRow) (row row, err error) {
		var (
			transaction                                         *uint64
			pid                                                 *int
			database, prepared, role, application, state, query *string
			age                                                 float64
		)
		err = r.Scan(&row.horizon, &transaction, &pid, &database, &prepared, &role, &application, &state, &age, &query)
		if transaction != nil {
			row.holder = &OpenTransaction{
				*transaction, value(pid), value(database), value(prepared), value(role), value(application), value(state),
				time.Duration(age * float64(time.Millisecond)), value(query),
			}
		}
		return row, err
	}, readHorizon)
	if err != nil {
		return Horizon{}, err
	}
	if len(rows) == 0 {
		return Horizon{}, errors.New("read the horizon: no answer")
	}
	horizon := Horizon{Transaction: rows[0].horizon}
	for _, row := range rows {
		if row.holder != nil {
			horizon.Holders = append(horizon.Holders, *row.holder)
		}
	}
	return horizon, nil
}
