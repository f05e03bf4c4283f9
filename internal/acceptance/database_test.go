package acceptance_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// migrate makes the tables before any node does.
func (c *cluster) migrate() {
	c.t.Helper()
	b, err := postgres.New(c.dsn, c.db)
	if err != nil {
		c.t.Fatal(err)
	}
	defer b.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.Migrate(ctx); err != nil {
		c.t.Fatal(err)
	}
}

// execute runs one statement, or several without arguments.
func execute(t *testing.T, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := conn.Exec(ctx, sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// value reads one value.
func value[T any](t *testing.T, conn *pgx.Conn, sql string, args ...any) (v T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := conn.QueryRow(ctx, sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// eventually waits until a condition in the database holds, which NULL and a
// query without rows do not.
func eventually(t *testing.T, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		var holds *bool
		err := conn.QueryRow(ctx, sql, args...).Scan(&holds)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			t.Fatalf("waiting for %s: %v", sql, err)
		}
		if holds != nil && *holds {
			return
		}
		<-tick.C
	}
}

// begin opens a connection in a transaction.
func begin(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn := pgtest.Conn(t, dsn)
	execute(t, conn, "BEGIN")
	return conn
}

// address is the TCP address of a server.
func address(server *pgtest.Server) string {
	return net.JoinHostPort(server.Host, strconv.Itoa(server.Port))
}
