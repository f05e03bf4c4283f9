package dialects

import (
	"context"
	"database/sql/driver"
)

// tapped is a connector of a driver that reports each statement except queries. If the
// report returns an error, the statement returns that error instead of its result.
type tapped struct {
	driver driver.Driver
	source string
	ran    func(statement string) error
	asked  func(query string) // if set, called when a query was run
}

func (t tapped) Driver() driver.Driver { return t.driver }

func (t tapped) Connect(context.Context) (driver.Conn, error) {
	conn, err := t.driver.Open(t.source)
	if err != nil {
		return nil, err
	}
	return tappedConn{conn, t}, nil
}

type tappedConn struct {
	driver.Conn
	tapped
}

func (c tappedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
	if err == nil && c.asked != nil {
		c.asked(query)
	}
	return rows, err
}

func (c tappedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	if err == nil {
		err = c.ran(query)
	}
	return result, err
}

func (c tappedConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, options)
	return tappedTx{tx, c.ran}, err
}

type tappedTx struct {
	driver.Tx
	ran func(statement string) error
}

func (t tappedTx) Commit() error {
	err := t.Tx.Commit()
	if err == nil {
		err = t.ran("COMMIT")
	}
	return err
}
