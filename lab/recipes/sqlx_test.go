package recipes

import (
	"context"
	"database/sql"

	"github.com/jmoiron/sqlx"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres"
)

func inSQLxTx(ctx context.Context, db *sqlx.DB, term *tenure.Term, fn func(tx *sqlx.Tx) error) error {
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after a commit
	if err := fn(tx); err != nil {
		return err
	}
	if err := postgres.FenceSQL(ctx, tx.Tx, term); err != nil {
		return err
	}
	return tx.Commit()
}

// newSQLxWriter writes with sqlx.
func newSQLxWriter(conn *sql.DB) (write, error) {
	db := sqlx.NewDb(conn, "pgx")
	return func(ctx context.Context, term *tenure.Term, name string, then func() error) error {
		return inSQLxTx(ctx, db, term, func(tx *sqlx.Tx) error {
			if _, err := tx.NamedExecContext(ctx, `INSERT INTO accounts (name) VALUES (:name)`, map[string]any{"name": name}); err != nil {
				return err
			}
			return then()
		})
	}, nil
}
