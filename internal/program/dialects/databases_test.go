package dialects

import (
	"context"
	"database/sql"
	"net/url"
	"path/filepath"
	"testing"

	_ "github.com/go-sql-driver/mysql" // registers "mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // registers "pgx"
	_ "modernc.org/sqlite"             // registers "sqlite"

	"github.com/exactly-one/tenure/internal/mariatest"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/lease"
)

// patience is how long tests wait for a condition.
const patience = testkit.Patience

// kind is a kind of database and connection.
type kind struct {
	name    string
	dialect lease.Dialect
	driver  string
	// source creates an empty database, dropped with the test, and returns its
	// data source name.
	source func(t testing.TB) string
}

var kinds = []kind{
	{"PostgreSQL", lease.PostgreSQL, "pgx", postgreSQL},
	{"PgBouncer", lease.PostgreSQL, "pgx", pooledPostgreSQL},
	{"SQLite", lease.SQLite, "sqlite", sqlite},
	{"MariaDB", lease.MySQL, "mysql", mariaDB},
}

// direct lists the kinds without the pooler, on which statements are those of PostgreSQL.
var direct = []kind{kinds[0], kinds[2], kinds[3]}

// open opens an empty database.
func (k kind) open(t testing.TB) *sql.DB {
	t.Helper()
	return k.connect(t, k.source(t))
}

// connect opens a pool of connections, which is closed when the test ends.
func (k kind) connect(t testing.TB, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open(k.driver, source)
	if err != nil {
		t.Fatal(err)
	}
	// Each connection that a test gave back could be used by the next one.
	db.SetMaxIdleConns(64)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func postgreSQL(t testing.TB) string { t.Helper(); return pgtest.Shared(t).Database(t) }

// pooledPostgreSQL returns a database behind a pooler that uses another connection for each
// transaction, so the driver must not prepare statements.
func pooledPostgreSQL(t testing.TB) string {
	t.Helper()
	pgtest.Long(t)
	server := pgtest.Shared(t)
	return pooled(t, server, server.Database(t))
}

// pooled leads to a database of a server through PgBouncer in transaction mode.
func pooled(t testing.TB, server *pgtest.Server, direct string) string {
	t.Helper()
	source, err := url.Parse(server.PgBouncer(t, "transaction").DSN(direct))
	if err != nil {
		t.Fatal(err)
	}
	query := source.Query()
	query.Set("default_query_exec_mode", "exec")
	source.RawQuery = query.Encode()
	return source.String()
}

func sqlite(t testing.TB) string {
	t.Helper()
	return "file:" + filepath.Join(t.TempDir(), "leases.db") + "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)"
}

func mariaDB(t testing.TB) string {
	t.Helper()
	pgtest.Long(t)
	server := mariatest.Shared(t)
	return server.DSN(server.Database(t))
}

// execute runs statements one by one.
func execute(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// value reads a single value as text.
func value(t testing.TB, db *sql.DB, query string) (answer string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var found sql.NullString
	if err := db.QueryRowContext(ctx, query).Scan(&found); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	if !found.Valid {
		return "NULL"
	}
	return found.String
}
