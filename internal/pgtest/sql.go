package pgtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/internal/testkit"
)

// SQL names the objects of a *postgres.Backend's schema in a statement, which stand
// in braces there, as {terms}.
func SQL(backend any, template string) string { return schema.Of(backend).SQL(template) }

// Database is a connection, a transaction or a pool.
type Database interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Exec runs a statement.
func Exec(t testing.TB, db Database, sql string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if _, err := db.Exec(ctx, sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// Value reads one value.
func Value[T any](t testing.TB, db Database, sql string, args ...any) (value T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := db.QueryRow(ctx, sql, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// Await waits until a condition in the database holds, which NULL and a query without
// rows do not.
func Await(t testing.TB, limit time.Duration, db Database, sql string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit+timeout)
	defer cancel()
	held := testkit.Within(limit, func() bool {
		var holds *bool
		if err := db.QueryRow(ctx, sql, args...).Scan(&holds); err != nil && !errors.Is(err, pgx.ErrNoRows) {
			t.Fatalf("waiting for %s: %v", sql, err)
		}
		return holds != nil && *holds
	})
	if !held {
		t.Fatalf("after %v still not: %s", limit, sql)
	}
}
