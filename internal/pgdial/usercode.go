package pgdial

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/usercode"
)

// Functions of the program are called on goroutines that open connections: a panic there
// would end the program, and with it its leaders, and runtime.Goexit the goroutine.

// callPassword calls the program's function for passwords.
func callPassword(ctx context.Context, password func(context.Context) (string, error)) (word string, err error) {
	if reason, _ := usercode.Call(func() { word, err = password(ctx) }); reason != nil {
		return "", fmt.Errorf("the function Password panicked: %v", reason)
	}
	return word, err
}

// callConnect calls the program's function that connects.
func callConnect(ctx context.Context, config *pgx.ConnConfig, connect func(context.Context, *pgx.ConnConfig) (*pgx.Conn, error)) (conn *pgx.Conn, err error) {
	if reason, _ := usercode.Call(func() { conn, err = connect(ctx, config) }); reason != nil {
		return nil, fmt.Errorf("the function Connect panicked: %v", reason)
	}
	if err == nil && conn == nil {
		err = errors.New("the function Connect returned no connection")
	}
	return conn, err
}
