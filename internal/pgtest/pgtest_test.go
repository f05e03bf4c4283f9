package pgtest_test

import (
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestSchemaIsUniqueAndDroppedWithTheTest(t *testing.T) {
	server := pgtest.Shared(t)
	conn := server.Conn(t)
	var name string
	t.Run("Inner", func(t *testing.T) {
		name = server.Schema(t)
		if name == server.Schema(t) {
			t.Fatalf("%s was given out twice", name)
		}
		if exists(t, conn, "SELECT FROM pg_namespace WHERE nspname = $1", name) {
			t.Fatalf("%s exists already", name)
		}
		statement := "CREATE SCHEMA " + name + " CREATE TABLE content (id int)"
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	})
	if exists(t, conn, "SELECT FROM pg_namespace WHERE nspname = $1", name) != testing.Short() {
		t.Errorf("%s exists: %v, want the opposite with -short=%v", name, !testing.Short(), testing.Short())
	}
}

func TestDatabaseIsDroppedWithTheTest(t *testing.T) {
	server := pgtest.Shared(t)
	conn := server.Conn(t)
	var name string
	t.Run("Inner", func(t *testing.T) {
		dsn := server.Database(t)
		if err := pgtest.Conn(t, dsn).QueryRow(t.Context(), "SELECT current_database()").Scan(&name); err != nil {
			t.Fatal(err)
		}
	})
	if exists(t, conn, "SELECT FROM pg_database WHERE datname = $1", name) {
		t.Errorf("%s still exists", name)
	}
}

func TestEveryVersionRuns(t *testing.T) {
	for _, version := range pgtest.Versions(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			server := pgtest.Start(t, pgtest.Options{Version: version})
			var number int
			query := "SELECT current_setting('server_version_num')::int / 10000"
			if err := server.Conn(t).QueryRow(t.Context(), query).Scan(&number); err != nil {
				t.Fatal(err)
			}
			if strconv.Itoa(number) != version || server.Major() != number {
				t.Errorf("version %s was wanted, got %d", version, number)
			}
		})
	}
}

func TestRestartKeepsPortAndData(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	for _, mode := range []string{"fast", "immediate", "smart"} {
		table := "before_" + mode
		t.Run(mode, func(t *testing.T) {
			if _, err := server.Conn(t).Exec(t.Context(), "CREATE TABLE "+table+" ()"); err != nil {
				t.Fatal(err)
			}
		}) // closes the connection, for which "smart" would wait
		before := server.PID()
		server.Restart(t, mode)
		if server.PID() == before {
			t.Errorf("%s: the process is the same", mode)
		}
		t.Run("after "+mode, func(t *testing.T) {
			if !exists(t, server.Conn(t), "SELECT FROM pg_class WHERE relname = $1", table) {
				t.Error("the table is gone")
			}
		})
	}
}

func TestReplicaFollowsPrimary(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	replica := primary.Replica(t, pgtest.ReplicaOptions{Synchronous: true})
	on := func(server *pgtest.Server, query string) (answer string) {
		t.Helper()
		if err := server.Conn(t).QueryRow(t.Context(), query).Scan(&answer); err != nil {
			t.Fatal(err)
		}
		return answer
	}

	if got := on(replica, "SELECT pg_is_in_recovery()::text"); got != "true" {
		t.Fatalf("in recovery: %s", got)
	}
	if got := on(primary, "SELECT sync_state FROM pg_stat_replication"); got != "sync" {
		t.Errorf("sync_state is %s", got)
	}
	identity := "SELECT system_identifier::text FROM pg_control_system()"
	if on(primary, identity) != on(replica, identity) {
		t.Error("the replica is of another system")
	}

	primary.Stop(t, "immediate")
	replica.Promote(t)
	if got := on(replica, "SELECT pg_is_in_recovery()::text"); got != "false" {
		t.Errorf("after promotion, in recovery: %s", got)
	}
	timeline := "SELECT substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)"
	if got := on(replica, timeline); got != "00000002" {
		t.Errorf("after promotion, timeline %s", got)
	}
}

func exists(t *testing.T, conn *pgx.Conn, query, name string) (found bool) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), "SELECT EXISTS ("+query+")", name).Scan(&found); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestPgBouncerForwardsQueries(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	through := server.PgBouncer(t, "transaction").DSN
	dsn := server.Database(t)
	var direct, pooled string
	query := "SELECT current_database()"
	if err := pgtest.Conn(t, dsn).QueryRow(t.Context(), query).Scan(&direct); err != nil {
		t.Fatal(err)
	}
	conn := pgtest.Conn(t, through(dsn))
	if err := conn.QueryRow(t.Context(), query, pgx.QueryExecModeExec).Scan(&pooled); err != nil {
		t.Fatal(err)
	}
	if direct != pooled {
		t.Errorf("got the database %s, want %s", pooled, direct)
	}
	var pid uint32
	if err := conn.QueryRow(t.Context(), "SELECT pg_backend_pid()", pgx.QueryExecModeExec).Scan(&pid); err != nil {
		t.Fatal(err)
	}
	if pid == conn.PgConn().PID() {
		t.Error("the connection goes to the server directly")
	}
}

func TestPgpoolForwardsQueries(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	conn := pgtest.Conn(t, server.Pgpool(t, pgtest.PgpoolOptions{Mode: "streaming_replication"}).DSN(server.DSN()))
	results, err := conn.PgConn().Exec(t.Context(), "SHOW pool_version").ReadAll()
	if err != nil || len(results) != 1 || len(results[0].Rows) != 1 {
		t.Errorf("%v, %v; want Pgpool-II to answer", results, err)
	}
}
