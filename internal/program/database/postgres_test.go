package database

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/pgdial"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// Through a pooler in transaction mode each transaction may have another session
// of the server. Statements that one session prepared would be missing in the
// next.
func TestPostgresWorksBehindAPooler(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	through := server.PgBouncer(t, "transaction").DSN
	dsn := through(server.Database(t)) + "&tenure_mode=lease"
	db := open(t, parse(t, dsn))
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE content (name text PRIMARY KEY, seen bigint)"); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	failures := make(chan error, 8)
	for worker := range cap(failures) {
		all.Go(func() { failures <- work(t.Context(), db, fmt.Sprintf("worker %d", worker)) })
	}
	all.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			t.Error(err)
		}
	}
	var sum int
	if err := db.QueryRowContext(t.Context(), "SELECT sum(seen) FROM content").Scan(&sum); err != nil || sum != 8*20 {
		t.Errorf("counted %d, %v", sum, err)
	}
}

// work counts to 20 in its own row, in transactions that overlap with those
// of others, so that the pooler spreads them over sessions.
func work(ctx context.Context, db *sql.DB, name string) error {
	if _, err := db.ExecContext(ctx, "INSERT INTO content VALUES ($1, 0)", name); err != nil {
		return err
	}
	for range 20 {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE content SET seen = seen + $2 WHERE name = $1", name, 1)
		if err == nil {
			err = tx.Commit()
		}
		if err != nil {
			return fmt.Errorf("%s: %w, rolled back: %w", name, err, tx.Rollback())
		}
	}
	return nil
}

func TestPostgresNamesItself(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	through := server.PgBouncer(t, "transaction").DSN
	for parameter, want := range map[string]string{"": "tenure", "&application_name=other": "other"} {
		for _, dsn := range []string{server.DSN(), through(server.DSN())} {
			db := open(t, parse(t, dsn+"&tenure_mode=lease"+parameter))
			var got string
			if err := db.QueryRowContext(t.Context(), "SHOW application_name").Scan(&got); err != nil || got != want {
				t.Errorf("%s: got %q, %v; want %q", dsn+parameter, got, err, want)
			}
		}
	}
}

func TestPostgresPairsConnect(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	dsn := fmt.Sprintf("host=%s port=%d user=postgres dbname=postgres tenure_mode = 'lease' sslmode=disable", server.Host, server.Port)
	db := open(t, parse(t, dsn))
	var one int
	if err := db.QueryRowContext(t.Context(), "SELECT $1 + 0", 1).Scan(&one); err != nil || one != 1 {
		t.Errorf("got %d, %v", one, err)
	}
}

// Sessions get a connection string in which nothing of the program's own is left.
func TestSessionStringHasNoOwnParameters(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	target := parse(t, server.DSN()+"&tenure_mode=session")
	conn := pgtest.Conn(t, target.session)
	var one int
	if err := conn.QueryRow(t.Context(), "SELECT 1").Scan(&one); err != nil || one != 1 {
		t.Errorf("got %d, %v", one, err)
	}
}

func TestPostgresConnectTimeoutHasADefault(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]time.Duration{
		"postgres://u@h/d":                   5 * time.Second,
		"postgres://u@h/d?connect_timeout=2": 2 * time.Second,
	} {
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		openPostgres(dsn, config, nil, pgdial.New(clocks.System()))
		if config.ConnectTimeout != want {
			t.Errorf("%s: got %v", dsn, config.ConnectTimeout)
		}
		if _, sent := config.RuntimeParams["statement_cache_capacity"]; sent || len(config.RuntimeParams) != 5 || config.RuntimeParams["client_encoding"] != "UTF8" {
			t.Errorf("%s: startup parameters %v", dsn, config.RuntimeParams)
		}
	}
}

func TestPostgresErrorsShowNoPassword(t *testing.T) {
	t.Parallel()
	db := open(t, parse(t, "postgres://u:secret@127.0.0.1:1/d?tenure_mode=lease"))
	err := db.PingContext(t.Context())
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

// Pools and leases find the primary behind a host that hangs.
func TestPostgresPassesHungHost(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the system accepts, and no server answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	dsn := fmt.Sprintf("host=127.0.0.1,%s port=%d,%d user=postgres dbname=postgres connect_timeout=60",
		server.Host, silent.Addr().(*net.TCPAddr).Port, server.Port)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	pool, err := parse(t, dsn).Pool(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := pool.Ping(ctx); err != nil {
		t.Errorf("a pool: %v", err)
	}
	if err := open(t, parse(t, dsn+" tenure_mode=lease")).PingContext(ctx); err != nil {
		t.Errorf("leases: %v", err)
	}
}

// Pools and leases connect to the address of hostaddr: no resolver knows the host.
func TestHostaddrLeadsPoolsAndLeases(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	for _, hosts := range []string{
		fmt.Sprintf("host=db.invalid hostaddr=%s port=%d", server.Host, server.Port),
		fmt.Sprintf("host=192.0.2.1 hostaddr=%s port=%d", server.Host, server.Port),
		fmt.Sprintf("hostaddr=%s port=%d", server.Host, server.Port),
		fmt.Sprintf("host=db.invalid,db.invalid hostaddr=127.0.0.1,%s port=1,%d load_balance_hosts=random", server.Host, server.Port),
	} {
		dsn := hosts + " user=postgres dbname=postgres sslmode=disable connect_timeout=20"
		pool, err := parse(t, dsn).Pool(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		if err := pool.Ping(t.Context()); err != nil {
			t.Errorf("%s: a pool: %v", hosts, err)
		}
		pool.Close()
		if err := open(t, parse(t, dsn+" tenure_mode=lease")).PingContext(t.Context()); err != nil {
			t.Errorf("%s: leases: %v", hosts, err)
		}
	}
}

// A pool's connections work whatever the role has set.
func TestPoolIgnoresSettingsOfTheRole(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	conn := server.Conn(t)
	for _, statement := range []string{
		"CREATE ROLE app LOGIN",
		"ALTER ROLE app SET default_transaction_read_only = on",
		"ALTER ROLE app SET DateStyle = German",
		"ALTER ROLE app SET client_encoding = LATIN1",
		"ALTER ROLE app SET idle_session_timeout = 1000",
	} {
		pgtest.Exec(t, conn, statement)
	}
	pool, err := parse(t, server.DSNFor("app", "postgres")).Pool(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for name, want := range map[string]string{
		"transaction_read_only": "off", "DateStyle": "ISO, YMD", "client_encoding": "UTF8", "idle_session_timeout": "0",
		"idle_in_transaction_session_timeout": "1min", "application_name": "tenure test",
	} {
		var got string
		if err := pool.QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&got); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, want)
		}
	}
}
