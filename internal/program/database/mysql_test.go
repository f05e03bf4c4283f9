package database

import (
	"context"
	"database/sql"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/mariatest"
	"github.com/exactly-one/tenure/internal/pgtest"
)

func TestMySQLStringsConnect(t *testing.T) {
	t.Parallel()
	server := mariatest.Shared(t)
	database := server.Database(t)
	for name, dsn := range map[string]string{
		"mysql":   server.URL(database),
		"mariadb": strings.Replace(server.URL(database), "mysql://", "mariadb://", 1),
		"socket":  "mysql://root@localhost/" + database + "?socket=" + url.QueryEscape(server.Socket),
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t, parse(t, dsn))
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			table := "content_" + name
			for _, statement := range []string{
				"CREATE TABLE " + table + " (id int PRIMARY KEY, name varchar(100) CHARACTER SET utf8mb4)",
				"INSERT INTO " + table + " VALUES (1, 'é')",
			} {
				if _, err := conn.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			checkFoundRows(t, conn, table)
			checkText(t, conn)
			checkTime(t, conn)
			// Nothing was prepared for all that.
			var what, count string
			if err := conn.QueryRowContext(t.Context(), "SHOW SESSION STATUS LIKE 'Com_stmt_prepare'").Scan(&what, &count); err != nil || count != "0" {
				t.Errorf("%s statements were prepared, %v", count, err)
			}
		})
	}
}

// checkFoundRows writes what is there already: the row counts nevertheless.
func checkFoundRows(t *testing.T, conn *sql.Conn, table string) {
	t.Helper()
	result, err := conn.ExecContext(t.Context(), "UPDATE "+table+" SET name = ? WHERE id = ?", "é", 1)
	if err != nil {
		t.Fatal(err)
	}
	if affected, err := result.RowsAffected(); err != nil || affected != 1 {
		t.Errorf("%d rows, %v", affected, err)
	}
}

// checkText sends characters of all lengths, and those that SQL quotes.
func checkText(t *testing.T, conn *sql.Conn) {
	t.Helper()
	const text = `é 漢 😀 ' " \ ` + "`\n\x00?"
	var back, charset string
	if err := conn.QueryRowContext(t.Context(), "SELECT ?, @@character_set_connection", text).Scan(&back, &charset); err != nil {
		t.Fatal(err)
	}
	if back != text || charset != "utf8mb4" {
		t.Errorf("got %q in %s", back, charset)
	}
}

func checkTime(t *testing.T, conn *sql.Conn) {
	t.Helper()
	at := time.Date(2024, 2, 29, 12, 30, 15, 123456000, time.FixedZone("", 3600))
	var back time.Time
	if err := conn.QueryRowContext(t.Context(), "SELECT CAST(? AS datetime(6))", at).Scan(&back); err != nil {
		t.Fatal(err)
	}
	if !back.Equal(at) || back.Location() != time.UTC {
		t.Errorf("got %v, want %v", back, at)
	}
}

func TestMySQLPasswordIsUnescaped(t *testing.T) {
	t.Parallel()
	server := mariatest.Shared(t)
	database := server.Database(t)
	const password = "s#e/c?r@e:t%"
	server.Execute(t, "CREATE USER "+database+"@'127.0.0.1' IDENTIFIED BY '"+password+"'; GRANT ALL ON "+database+".* TO "+database+"@'127.0.0.1'")
	t.Cleanup(func() { server.Execute(t, "DROP USER "+database+"@'127.0.0.1'") })
	dsn, err := url.Parse(server.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	dsn.User = url.UserPassword(database, password)
	if err := open(t, parse(t, dsn.String())).PingContext(t.Context()); err != nil {
		t.Error(err)
	}
	dsn.User = url.UserPassword(database, "wrong secret")
	err = open(t, parse(t, dsn.String())).PingContext(t.Context())
	if err == nil || strings.Contains(err.Error(), "wrong secret") || !strings.Contains(err.Error(), "Access denied") {
		t.Errorf("with a wrong password: %v", err)
	}
}

// A server that says nothing does not hold up who set a deadline, or who wants to
// connect.
func TestMySQLPausedServerIsGivenUp(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := mariatest.Start(t, mariatest.Options{})
	db := open(t, parse(t, server.URL("mysql")))
	if err := db.PingContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Pause(t)
	for _, what := range []string{"a connection that was open", "a new connection"} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		begun := time.Now()
		_, err := db.ExecContext(ctx, "DO 1")
		cancel()
		if err == nil || time.Since(begun) > 5*time.Second {
			t.Errorf("%s: %v after %v", what, err, time.Since(begun))
		}
	}
	server.Resume(t)
	if err := db.PingContext(t.Context()); err != nil {
		t.Errorf("a server that continues: %v", err)
	}
}
