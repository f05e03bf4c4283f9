package lease

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/exactly-one/tenure"
)

// refuseOpenTransaction returns an error if the database leaves a transaction open
// after a statement that was to commit by itself, as Pgpool-II in raw mode does
// after a write: nobody would see what a node writes. Only PostgreSQL has such
// poolers.
func (d database) refuseOpenTransaction(ctx context.Context) error {
	if d.dialect != PostgreSQL {
		return nil
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	open, err := d.leavesTransactionOpen(ctx)
	if err != nil {
		return d.dialect.explain("look for a pooler", err)
	}
	if open {
		return fmt.Errorf("%w: a statement that was to commit by itself was not committed: so does Pgpool-II in raw mode. "+
			"Connect directly to PostgreSQL, or through a pooler that keeps to transactions", tenure.ErrPooled)
	}
	return nil
}

// leavesTransactionOpen looks whether two statements have one time of their
// transactions' beginnings. A pooler takes SELECT FOR UPDATE for a write; it needs
// no table and no privilege.
func (d database) leavesTransactionOpen(ctx context.Context) (bool, error) {
	conn, err := d.connect(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	if err := forEach(ctx, conn, "SELECT 1 FOR UPDATE", func(rows *sql.Rows) error { return rows.Scan(new(int)) }); err != nil {
		return false, err
	}
	var begun [2]string
	for i := range begun {
		err := forEach(ctx, conn, "SELECT now()::text", func(rows *sql.Rows) error { return rows.Scan(&begun[i]) })
		if err != nil {
			return false, err
		}
		if i == 0 { // the server's clock may be coarse
			if err := forEach(ctx, conn, "SELECT pg_sleep(0.02)::text", func(rows *sql.Rows) error { return rows.Scan(new(string)) }); err != nil {
				return false, err
			}
		}
	}
	return begun[0] == begun[1], nil
}
