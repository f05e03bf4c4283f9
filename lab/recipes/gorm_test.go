package recipes

import (
	"context"
	"database/sql"
	"errors"
	"time"

	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres"
)

func inGORMTx(ctx context.Context, db *gorm.DB, term *tenure.Term, fn func(tx *gorm.DB) error) error {
	return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := fn(tx); err != nil {
			return err
		}
		pool := tx.Statement.ConnPool
		if prepared, ok := pool.(*gorm.PreparedStmtTX); ok { // with gorm.Config.PrepareStmt
			pool = prepared.Tx
		}
		sqlTx, ok := pool.(*sql.Tx)
		if !ok {
			return errors.New("this GORM connection has no *sql.Tx to fence")
		}
		return postgres.FenceSQL(ctx, sqlTx, term)
	})
}

type gormAccount struct {
	ID   int64
	Name string
}

func (gormAccount) TableName() string { return "accounts" }

// neverEvicted makes GORM keep its statements. With another time,
// GORM starts a goroutine that never ends.
const neverEvicted = 10 * 365 * 24 * time.Hour

// gormWriter writes with GORM, in a nested transaction.
func gormWriter(config gorm.Config) newWriter {
	return func(conn *sql.DB) (write, error) {
		db, err := gorm.Open(gormpostgres.New(gormpostgres.Config{Conn: conn}), &config)
		return func(ctx context.Context, term *tenure.Term, name string, then func() error) error {
			return inGORMTx(ctx, db, term, func(tx *gorm.DB) error {
				nested := tx.Transaction(func(tx *gorm.DB) error { return tx.Create(&gormAccount{Name: name}).Error })
				return errors.Join(nested, then())
			})
		}, err
	}
}
