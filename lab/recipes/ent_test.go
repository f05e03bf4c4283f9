package recipes

import (
	"context"
	"database/sql"
	"errors"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres"
)

// openTx makes ent use one open transaction, also where it would begin its own.
type openTx struct{ dialect.Driver }

func (d openTx) Tx(context.Context) (dialect.Tx, error) { return dialect.NopTx(d.Driver), nil }

// inEntTx calls fn with the driver; in a program with ent.NewClient(ent.Driver(driver)).
func inEntTx(ctx context.Context, db *sql.DB, term *tenure.Term, fn func(driver dialect.Driver) error) error {
	return postgres.InSQLTx(ctx, db, nil, term, func(tx *sql.Tx) error {
		driver := entsql.NewDriver(dialect.Postgres, entsql.Conn{ExecQuerier: tx})
		return fn(openTx{driver})
	})
}

// newEntWriter writes with ent's dialect.
func newEntWriter(conn *sql.DB) (write, error) {
	return func(ctx context.Context, term *tenure.Term, name string, then func() error) error {
		return inEntTx(ctx, conn, term, func(driver dialect.Driver) error {
			tx, err := driver.Tx(ctx) // as ent's builders begin one for a node with edges
			if err != nil {
				return err
			}
			query, args := entsql.Dialect(dialect.Postgres).Insert("accounts").Columns("name").Values(name).Returning("id").Query()
			var rows entsql.Rows
			if err := tx.Query(ctx, query, args, &rows); err != nil {
				return err
			}
			if id, err := entsql.ScanInt64(rows); err != nil {
				return err
			} else if id == 0 {
				return errors.New("the insert returned no id")
			}
			if err := rows.Close(); err != nil {
				return err
			}
			if err := tx.Commit(); err != nil {
				return err
			}
			return then()
		})
	}, nil
}
