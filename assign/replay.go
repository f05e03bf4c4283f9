package assign

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Replay makes dead rows pending again, with no attempts counted, and returns how
// many: at most limit, or all if that is 0, in the order in which rows are
// assigned; if ids are given, only those, as texts. It can run anywhere, in a
// transaction or not: in a job of package cron, do it with its Run.InTx. Rows
// that another transaction has locked are left out. The database user needs
// SELECT on the table and UPDATE on the columns of state, node, attempts and
// assignment.
//
// Errors match tenure.ErrInvalidConfig if the table or an id cannot be used, and
// dberr.ErrPrivilege.
func Replay(ctx context.Context, database Querier, config Config, limit int, ids ...string) (replayed int, err error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return 0, err
	}
	if limit < 0 {
		return 0, invalid("the most rows to replay are %d; the least is 0, for all", limit)
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
		return 0, invalid("one of the ids %q is none of %s: %v", ids, config.Table.Sanitize(), err)
	}
	if err != nil {
		return 0, fmt.Errorf("replaying dead rows of %s: %w", config.Table.Sanitize(), err)
	}
	return replayed, nil
}
