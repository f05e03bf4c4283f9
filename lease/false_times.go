package lease

import (
	"context"
	"database/sql"

	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// correctHolders corrects all leases if a holder's lease was written while the clock was ahead.
// The roles are read again at the next attempt.
func (s *session) correctHolders(ctx context.Context, byRole map[string]*roleRow) error {
	for _, r := range byRole {
		if r.hasFalseLease() {
			return s.backend.correctLeases(ctx)
		}
	}
	return nil
}

// correctLeases corrects leases written while the clock was ahead, before something waits for
// their end. It is a separate transaction: the caller's may be rolled back because the
// leases have not ended. It reads them first: on MySQL an UPDATE locks every row it
// examines.
func (b *Backend) correctLeases(ctx context.Context) error {
	var found []int64
	err := b.db.Read(ctx, "read leases", func(ctx context.Context, on sqldb.Querier) error {
		found = nil
		return sqldb.ForEach(ctx, on, b.sql(falseLeasesQuery), func(rows *sql.Rows) error {
			var incarnation int64
			err := rows.Scan(&incarnation)
			found = append(found, incarnation)
			return err
		})
	})
	if err != nil || len(found) == 0 {
		return err
	}
	return b.db.InTx(ctx, "correct leases", func(ctx context.Context, on sqldb.Querier) error {
		return sqldb.InLists(b.db.Dialect, b.sql(correctLeasesQuery), found, nil, func(query string, args []any) error {
			return sqldb.Exec(ctx, on, query, args...)
		})
	})
}
