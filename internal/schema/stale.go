package schema

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const terminateHolders = `
SELECT count(pg_terminate_backend(pid))
FROM pg_locks
WHERE locktype = 'advisory'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND ((classid::bigint << 32) | objid::bigint) = $1
    AND objsubid = 1
    AND pid <> pg_backend_pid()`

// EndStaleTransactions ends the other server sessions with the advisory lock of a key, in
// this database. It is for work with this lock, shared, as a mark on all its transactions.
// A transaction left open by an earlier term can no longer commit, but may hold locks
// needed by the next term. The user must be allowed to end them, as every user is for its
// own sessions.
func EndStaleTransactions(ctx context.Context, tx pgx.Tx, key int64) error {
	if _, err := tx.Exec(ctx, terminateHolders, key); err != nil {
		return fmt.Errorf("end transactions of earlier terms: %w", err)
	}
	return nil
}
