package lease

import (
	"context"
	"database/sql"

	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// correctLeases corrects the leases of holders that were written under a clock that was
// ahead. The roles are read again at the next attempt.
func (s *session) correctLeases(ctx context.Context, byRole map[string]*roleRow) error {
	for _, r := range byRole {
		if r.hasFalseLease() {
			return s.backend.db.InTx(ctx, "correct leases", s.backend.correctLeases)
		}
	}
	return nil
}

// correctLeases corrects all leases that were written under a clock that was ahead. It
// reads them first: on MySQL an UPDATE that looks at all rows would lock them.
func (b *Backend) correctLeases(ctx context.Context, on sqldb.Querier) error {
	var found []int64
	err := sqldb.ForEach(ctx, on, b.queries.falseLeases, func(rows *sql.Rows) error {
		var incarnation int64
		err := rows.Scan(&incarnation)
		found = append(found, incarnation)
		return err
	})
	if err != nil {
		return err
	}
	return sqldb.InLists(b.db.Dialect, b.queries.correctLeases, found, nil, func(query string, args []any) error {
		return sqldb.Exec(ctx, on, query, args...)
	})
}
