package pgdial

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Functions of the program are called on goroutines that open connections: a panic there
// would end the program, and with it its leaders.

// callPassword calls the program's function for passwords.
func callPassword(ctx context.Context, password func(context.Context) (string, error)) (word string, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("the function Password panicked: %v", reason)
		}
	}()
	return password(ctx)
}

// callConnect calls the program's function that connects.
func callConnect(ctx context.Context, config *pgx.ConnConfig, connect func(context.Context, *pgx.ConnConfig) (*pgx.Conn, error)) (conn *pgx.Conn, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("the function Connect panicked: %v", reason)
		}
	}()
	conn, err = connect(ctx, config)
	if err == nil && conn == nil {
		err = errors.New("the function Connect returned no connection")
	}
	return conn, err
}
