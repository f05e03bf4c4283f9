package sqldb

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/exactly-one/tenure/dberr"
)

// CheckAutocommit returns an error if a statement outside a transaction is not committed,
// as with Pgpool-II in raw mode after a write: no other node would see the writes of a
// node. Only PostgreSQL has such poolers.
func (d DB) CheckAutocommit(ctx context.Context) error {
	if d.Dialect != PostgreSQL {
		return nil
	}
	ctx, cancel := WithDefaultTimeout(ctx)
	defer cancel()
	open, err := d.leavesTransactionOpen(ctx)
	if err != nil {
		return d.Dialect.Explain("check for a pooler", err)
	}
	if open {
		return fmt.Errorf("%w: a statement outside a transaction was not committed, as with Pgpool-II in raw mode: "+
			"connect directly to PostgreSQL, or through a pooler that does not hold transactions open", dberr.ErrPooled)
	}
	return nil
}

// leavesTransactionOpen reports whether two statements see the same start time of their
// transaction. It begins with SELECT FOR UPDATE: poolers treat it as a write, and it needs
// no table and no privilege.
func (d DB) leavesTransactionOpen(ctx context.Context) (bool, error) {
	conn, err := d.Connect(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	for range 2 { // in front of PostgreSQL 18, Pgpool-II begins no transaction for the first one after a ping
		if err := ForEach(ctx, conn, "SELECT 1 FOR UPDATE", func(rows *sql.Rows) error { return rows.Scan(new(int)) }); err != nil {
			return false, err
		}
	}
	var begun [2]string
	for i := range begun {
		err := ForEach(ctx, conn, "SELECT now()::text", func(rows *sql.Rows) error { return rows.Scan(&begun[i]) })
		if err != nil {
			return false, err
		}
		if i == 0 { // the server's clock can be coarse
			if err := ForEach(ctx, conn, "SELECT pg_sleep(0.02)::text", func(rows *sql.Rows) error { return rows.Scan(new(string)) }); err != nil {
				return false, err
			}
		}
	}
	return begun[0] == begun[1], nil
}
