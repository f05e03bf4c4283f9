package pgdial

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/usercode"
)

// Functions of the program are called while a connection opens: a panic there would end
// the program, and with it its leaders, and the end of the goroutine would leave waiting
// callers without an answer.

// callPassword calls the program's function for passwords.
func callPassword(ctx context.Context, password func(context.Context) (string, error)) (word string, err error) {
	reason, _ := usercode.Call(func() {
		if word, err = password(ctx); err != nil {
			_ = err.Error() // it is code of the program too, and is called again to describe the failure
		}
	})
	if reason != nil {
		return "", fmt.Errorf("the function Password panicked: %v", reason)
	}
	return word, err
}

// callConnect calls the program's function for connections.
func callConnect(ctx context.Context, config *pgx.ConnConfig, connect func(context.Context, *pgx.ConnConfig) (*pgx.Conn, error)) (conn *pgx.Conn, err error) {
	reason, _ := usercode.Call(func() {
		if conn, err = connect(ctx, config); err != nil {
			_ = err.Error() // as above
		}
	})
	if reason != nil {
		return nil, fmt.Errorf("the function Connect panicked: %v", reason)
	}
	if err == nil && conn == nil {
		err = errors.New("the function Connect returned no connection")
	}
	return conn, err
}
