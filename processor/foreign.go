package processor

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/printable"
)

// ErrForeignLog is returned if the log or the processor's cursor comes from
// another database cluster. Its transaction ids cannot be compared with this
// cluster's, so the processor does not run until [Admin.Repair] has converted
// them. Until then its status is failed, with this as the last error.
var ErrForeignLog = fmt.Errorf("%w: the log was restored from another database cluster", tenure.ErrRefused)

// After a restore from another cluster, the cursor or the log cannot be compared with this
// cluster's transactions.
const checkCursor = `
SELECT
    p.generation,
    p.system_identifier NOT IN (0, control.system_identifier)
        OR p.cursor_transaction >= pg_snapshot_xmax(pg_current_snapshot())
FROM {processors} p, pg_control_system() control
WHERE p.name = $1`

// checkAhead checks whether this cluster has not yet assigned the transaction id of the
// last event. It reads only the last event: a search for any such event could read the
// whole log.
const checkAhead = `
SELECT last.transaction_id >= pg_snapshot_xmax(pg_current_snapshot())
FROM (
    SELECT log.transaction_id
    FROM (%[1]s) log
    WHERE (log.transaction_id, log.position) > ($%[2]d::text::xid8, $%[3]d::bigint)
    ORDER BY log.transaction_id DESC, log.position DESC
    LIMIT 1
) last`

// logAhead reports whether this cluster has not yet assigned the transaction id of the
// last event.
func (l *loop) logAhead(ctx context.Context) (ahead bool, err error) {
	n := len(l.reader.log.args)
	err = l.reader.one(ctx, l.reader.database, fmt.Sprintf(checkAhead, l.reader.log.query, n+1, n+2), Cursor{}, nil, &ahead)
	return ahead, err
}

// checkLog returns an error if the cursor or the log comes from another
// database cluster, and records it in the processor's row unless the log was
// repaired in the meantime.
func (l *loop) checkLog(ctx context.Context) error {
	var generation int64
	var foreign bool
	if err := l.one(ctx, checkCursor, []any{l.config.Name}, &generation, &foreign); err != nil {
		return fmt.Errorf("check the cursor of %s: %w", l.config.Name, err)
	}
	if !foreign {
		var err error
		if foreign, err = l.logAhead(ctx); err != nil {
			return err
		}
	}
	if !foreign {
		return nil
	}
	refusal := fmt.Errorf("%w: its transaction ids cannot be compared with those of this one, and events would be lost; "+
		"stop all writers and run: tenure processor repair %s", ErrForeignLog, l.config.Name)
	err := l.fenced(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, l.tables.SQL(recordForeign), l.config.Name, printable.Clip(refusal.Error(), maxError), l.term.Role().Name(), l.term.Number(), generation)
		return err
	})
	return errors.Join(refusal, err)
}
