package grantee_test

import (
	"testing"

	"github.com/exactly-one/tenure/internal/grantee"
	"github.com/exactly-one/tenure/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestGranteeIsTheUserWhoConnected(t *testing.T) {
	server := pgtest.Shared(t)
	pgtest.Exec(t, pgtest.Conn(t, server.DSN()), `DROP ROLE IF EXISTS "so ""named"; CREATE ROLE "so ""named" LOGIN`)
	dsn := server.DSNFor(`so "named`, "postgres")
	conn, pool := pgtest.Conn(t, dsn), pgtest.Pool(t, dsn)
	pooled, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer pooled.Release()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, on := range map[string]any{"connection": conn, "of the protocol": conn.PgConn(), "transaction": tx, "pool": pool, "of a pool": pooled} {
		if got := grantee.Of(on); got != `"so ""named"` {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := grantee.Of(nil); got != "this user" {
		t.Error(got)
	}
}
