//go:build unix

package database

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/mariatest"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// rotation is a database whose user's password changes.
type rotation struct {
	connect func(login Password) (query func(context.Context) error, reset func())
	change  func(password string)
}

// Every kind of connection uses the password that the command prints at that time.
func TestConnectionsFollowRotation(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(t *testing.T) rotation{
		"pool":   rotatePool,
		"leases": rotateLeases,
		"MySQL":  rotateMySQL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := begin(t)
			file := filepath.Join(t.TempDir(), "password")
			rotate := func(password string) {
				t.Helper()
				r.change(password)
				if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			rotate("first")
			query, reset := r.connect(PasswordCommand("cat " + file))
			for _, password := range []string{"second", "third"} {
				if err := query(t.Context()); err != nil {
					t.Errorf("before the %s password: %v", password, err)
				}
				rotate(password)
				reset() // the next connection is new
			}
			if err := query(t.Context()); err != nil {
				t.Error(err)
			}
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			reset()
			if err := query(t.Context()); err == nil || !strings.Contains(err.Error(), "the password command failed") {
				t.Errorf("without a password: %v", err)
			}
		})
	}
}

// rotatingServer is a server of PostgreSQL with a user of passwords.
func rotatingServer(t *testing.T) (dsn string, change func(string)) {
	server := pgtest.Start(t, pgtest.Options{HBA: []string{"host all app 127.0.0.1/32 scram-sha-256"}})
	admin := server.Conn(t)
	pgtest.Exec(t, admin, "CREATE ROLE app LOGIN")
	return server.DSNFor("app", "postgres"), func(password string) {
		t.Helper()
		pgtest.Exec(t, admin, "ALTER ROLE app PASSWORD '"+password+"'")
	}
}

func rotatePool(t *testing.T) rotation {
	dsn, change := rotatingServer(t)
	return rotation{change: change, connect: func(login Password) (func(context.Context) error, func()) {
		target, err := Parse(dsn, login)
		if err != nil {
			t.Fatal(err)
		}
		pool, err := target.Pool(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		return pool.Ping, pool.Reset
	}}
}

func rotateLeases(t *testing.T) rotation {
	dsn, change := rotatingServer(t)
	return rotation{change: change, connect: openRotating(t, dsn+"&tenure_mode=lease")}
}

func rotateMySQL(t *testing.T) rotation {
	server := mariatest.Shared(t)
	database := server.Database(t)
	server.Execute(t, "CREATE USER rotated@'%'; GRANT ALL ON "+database+".* TO rotated@'%'")
	change := func(password string) {
		t.Helper()
		server.Execute(t, "ALTER USER rotated@'%' IDENTIFIED BY '"+password+"'")
	}
	return rotation{change: change, connect: openRotating(t, strings.Replace(server.URL(database), "root@", "rotated@", 1))}
}

// openRotating returns a function that opens a database of leases.
func openRotating(t *testing.T, dsn string) func(Password) (func(context.Context) error, func()) {
	return func(login Password) (func(context.Context) error, func()) {
		target, err := Parse(dsn, login)
		if err != nil {
			t.Fatal(err)
		}
		db, err := target.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db.PingContext, func() {
			db.SetMaxIdleConns(0)
			db.SetMaxIdleConns(2)
		}
	}
}
