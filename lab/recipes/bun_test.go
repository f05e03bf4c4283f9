package recipes

import (
	"context"
	"database/sql"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres"
)

func inBunTx(ctx context.Context, db *bun.DB, term *tenure.Term, fn func(ctx context.Context, tx bun.Tx) error) error {
	return db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		if err := fn(ctx, tx); err != nil {
			return err
		}
		return postgres.FenceSQL(ctx, tx.Tx, term)
	})
}

type bunAccount struct {
	bun.BaseModel `bun:"table:accounts"`

	ID   int64 `bun:",pk,autoincrement"`
	Name string
}

// newBunWriter writes with bun, in a nested transaction.
func newBunWriter(conn *sql.DB) (write, error) {
	db := bun.NewDB(conn, pgdialect.New())
	return func(ctx context.Context, term *tenure.Term, name string, then func() error) error {
		return inBunTx(ctx, db, term, func(ctx context.Context, tx bun.Tx) error {
			insert := func(ctx context.Context, tx bun.Tx) error {
				_, err := tx.NewInsert().Model(&bunAccount{Name: name}).Exec(ctx)
				return err
			}
			if err := tx.RunInTx(ctx, nil, insert); err != nil { // a savepoint
				return err
			}
			return then()
		})
	}, nil
}
