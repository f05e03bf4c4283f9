package assign

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Replay makes dead rows pending again, resets their attempts, and returns their number:
// at most limit, or all if limit is 0, in the order of assignment. With ids, given as
// texts, it replays only those. It can run anywhere, with or without a transaction; in a
// job of package cron, use Run.InTx. It skips rows locked by another transaction. The
// database user needs SELECT on the table and UPDATE on the columns for state, node,
// attempts and assignment.
//
// The error matches tenure.ErrInvalidConfig if the table or an id cannot be
// used, and dberr.ErrPrivilege if a privilege is missing.
func Replay(ctx context.Context, database Querier, config Config, limit int, ids ...string) (replayed int, err error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return 0, err
	}
	if limit < 0 {
		return 0, invalid("the limit is %d; it must be at least 0", limit)
	}
	table, err := readTable(ctx, database, config)
	if err != nil {
		return 0, err
	}
	var most *int
	if limit > 0 {
		most = &limit
	}
	rows, err := database.Query(ctx, table.sql(replayRows), fresh, config.States.Dead, config.States.Pending, ids, most)
	if err == nil {
		replayed, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
	}
	if inClass(err, classBadValue) {
		return 0, invalid("one of the ids %q is not an id of %s: %v", ids, config.Table.Sanitize(), err)
	}
	if err != nil {
		return 0, fmt.Errorf("replay dead rows of %s: %w", config.Table.Sanitize(), err)
	}
	return replayed, nil
}
