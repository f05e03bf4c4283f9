//go:build linux

package main

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/bench/chaos/script"
	"github.com/exactly-one/tenure/internal/pgserver"
)

// The server also reads its clock in signal handlers, whatever they interrupt: a library that
// opens the file of the clock there destroys the memory of the process.
func TestServerSurvivesFakeClock(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make test-all runs it")
	}
	clock, err := findFakeClock("") // where the account of the server can read it
	if err != nil {
		t.Fatal(err)
	}
	if clock == nil {
		t.Skip("there is no libfaketime")
	}
	t.Cleanup(func() {
		if err := clock.close(); err != nil {
			t.Error(err)
		}
	})
	box, err := pgserver.NewSandbox()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	server, err := box.Start(t.Context(), pgserver.Options{Environment: clock.environment()})
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{server: server, admin: server.DSN(), clock: clock}
	end, note, err := stepClock(t.Context(), b, nil, script.Step{By: 300 * time.Millisecond})
	if err != nil {
		t.Fatalf("the clock was not set: %s, %v", note, err)
	}
	err = b.asAdmin(t.Context(), func(conn *pgx.Conn) error {
		// A timer that ends no statement.
		if _, err := conn.Exec(t.Context(), "SET client_connection_check_interval = '1ms'"); err != nil {
			return err
		}
		_, err := conn.Exec(t.Context(), "SELECT count(clock_timestamp()) FROM generate_series(1, 500000)")
		return err
	})
	if err != nil {
		t.Errorf("a timer that reads the clock interrupted a statement that does: %v\n%s", err, server.Log())
	}
	if err := end(t.Context()); err != nil {
		t.Error(err)
	}
}
