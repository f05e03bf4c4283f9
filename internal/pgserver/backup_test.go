package pgserver

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
)

// withoutClients returns a directory with the programs of a server and none of
// clients.
func withoutClients(t *testing.T) string {
	t.Helper()
	installation, err := Find("")
	if err != nil {
		t.Fatal(err)
	}
	directory, err := os.MkdirTemp("", "tenure-bin-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(directory); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(directory, 0o755); err != nil { // the server's account reads it
		t.Fatal(err)
	}
	for _, program := range []string{"initdb", "pg_ctl", "postgres"} {
		if err := os.Symlink(installation.program(program), filepath.Join(directory, program)); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

func TestReplicaNeedsNoClientPrograms(t *testing.T) {
	inLongRun(t)
	t.Setenv(BinariesVariable, withoutClients(t))
	primary := start(t, newSandbox(t), Options{})
	ctx := t.Context()
	connect := func(server *Server) *pgx.Conn {
		t.Helper()
		conn, err := pgx.Connect(ctx, server.DSN())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(context.WithoutCancel(ctx)) })
		return conn
	}
	if _, err := connect(primary).Exec(ctx, "CREATE TABLE kept AS SELECT n FROM generate_series(1, 1000) n"); err != nil {
		t.Fatal(err)
	}
	replica, err := primary.Replica(ctx, ReplicaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := replica.Promote(ctx); err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := connect(replica).QueryRow(ctx, "SELECT count(*) FROM kept").Scan(&rows); err != nil || rows != 1000 {
		t.Errorf("the replica has %d rows, %v, want 1000", rows, err)
	}
}
