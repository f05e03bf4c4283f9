//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgserver"
	"github.com/exactly-one/tenure/lab/chaos/script"
)

// The server also reads its clock in signal handlers, whatever they interrupt: a library that
// opens the file of the clock there destroys the memory of the process.
func TestServerSurvivesFakeClock(t *testing.T) {
	b := startFakeClock(t)
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
		t.Errorf("a timer that reads the clock interrupted a statement that does: %v\n%s", err, b.server.Log())
	}
	if err := end(t.Context()); err != nil {
		t.Error(err)
	}
}

// A process that is killed keeps the lock that libfaketime has for all processes of a server.
func TestServerNeedsNoLockOfFakeClock(t *testing.T) {
	b := startFakeClock(t)
	pid := b.server.PID()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	var lock int64
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, "faketime_sem") {
			if _, err := fmt.Sscanf(line, "%x-", &lock); err != nil {
				t.Fatal(err)
			}
		}
	}
	if lock == 0 {
		t.Fatalf("the server does not have the lock:\n%s", maps)
	}
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = memory.WriteAt(make([]byte, 8), lock) // a semaphore that is held
	if err = errors.Join(err, memory.Close()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err = b.asAdmin(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SELECT modification FROM pg_stat_file('postgresql.conf')")
		return err
	})
	if err != nil {
		t.Errorf("the server waits for the lock: %v", err)
	}
}

// startFakeClock starts a server with a fake clock.
func startFakeClock(t *testing.T) *bed {
	t.Helper()
	if testing.Short() {
		t.Skip("long: make deep runs it")
	}
	clock, err := pgserver.FindFakeClock("") // where the account of the server can read it
	if err != nil {
		t.Fatal(err)
	}
	if clock == nil {
		t.Skip("there is no libfaketime")
	}
	t.Cleanup(func() {
		if err := clock.Close(); err != nil {
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
	server, err := box.Start(t.Context(), pgserver.Options{Environment: clock.Environment()})
	if err != nil {
		t.Fatal(err)
	}
	return &bed{server: server, admin: server.DSN(), clock: clock}
}
