package faultwire_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// connect opens a session through a separate proxy.
func connect(t *testing.T, parameters string) (*pgx.Conn, *faultwire.Proxy) {
	t.Helper()
	server := pgtest.Shared(t)
	proxy := startProxy(t, net.JoinHostPort(server.Host, strconv.Itoa(server.Port)))
	dsn, err := proxy.DSN(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	return pgtest.Conn(t, dsn+parameters), proxy
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func awaitNamed(t *testing.T, proxy *faultwire.Proxy, name string) *faultwire.Conn {
	t.Helper()
	conn, err := proxy.AwaitNamed(bounded(t), name)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func query(t *testing.T, conn *pgx.Conn, sql string) (answer string) {
	t.Helper()
	if err := conn.QueryRow(bounded(t), sql).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return answer
}

func TestConnHasNameOfItsSession(t *testing.T) {
	t.Parallel()
	for name, parameters := range map[string]string{
		"plain":       "&application_name=first",
		"TLS refused": "&application_name=first&sslmode=prefer",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, proxy := connect(t, parameters)
			seen := awaitNamed(t, proxy, "first")
			if seen.PID() != conn.PgConn().PID() || seen.User() != "postgres" || seen.Database() != "postgres" {
				t.Errorf("got PID %d, user %s, database %s", seen.PID(), seen.User(), seen.Database())
			}
			query(t, conn, "SELECT set_config('application_name', 'second', false)")
			if renamed := awaitNamed(t, proxy, "second"); renamed != seen {
				t.Error("another connection")
			}
		})
	}
}

func TestInjectRunsAStatement(t *testing.T) {
	t.Parallel()
	conn, proxy := connect(t, "&application_name=victim")
	victim := awaitNamed(t, proxy, "victim")
	query(t, conn, "SELECT set_config('tenure.incarnation', '7', false)")
	if err := victim.Inject(bounded(t), "RESET ALL"); err != nil {
		t.Fatal(err)
	}
	if got := query(t, conn, "SELECT current_setting('tenure.incarnation', true)"); got != "" {
		t.Errorf("the setting is still %q", got)
	}
}

func TestInjectBetweenTheClientsQueries(t *testing.T) {
	t.Parallel()
	conn, proxy := connect(t, "&application_name=busy")
	victim := awaitNamed(t, proxy, "busy")
	var injecting sync.WaitGroup
	defer injecting.Wait()
	injecting.Go(func() {
		for range 200 {
			if err := victim.Inject(bounded(t), "SELECT 'injected' FROM generate_series(1, 10)"); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range 200 {
		want := strconv.Itoa(i)
		var got string
		if err := conn.QueryRow(bounded(t), "SELECT $1::text", want).Scan(&got); err != nil || got != want {
			t.Fatalf("got %q (%v), want %q", got, err, want)
		}
	}
}

func TestInjectWaitsForTheEndOfATransaction(t *testing.T) {
	t.Parallel()
	conn, proxy := connect(t, "&application_name=busy")
	victim := awaitNamed(t, proxy, "busy")
	tx, err := conn.Begin(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := victim.Inject(short, "SELECT 1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("in a transaction: %v", err)
	}
	if err := tx.Commit(bounded(t)); err != nil {
		t.Fatal(err)
	}
	if err := victim.Inject(bounded(t), "SELECT 1"); err != nil {
		t.Errorf("after it: %v", err)
	}
}

func TestInjectedStatementFails(t *testing.T) {
	t.Parallel()
	conn, proxy := connect(t, "&application_name=victim")
	err := awaitNamed(t, proxy, "victim").Inject(bounded(t), "SELECT 1/0")
	var failure *pgconn.PgError
	if !errors.As(err, &failure) || failure.Code != "22012" {
		t.Errorf("got %v", err)
	}
	if got := query(t, conn, "SELECT 'still here'"); got != "still here" {
		t.Errorf("got %q", got)
	}
}

func TestInjectedStatementEndsTheSession(t *testing.T) {
	t.Parallel()
	conn, proxy := connect(t, "&application_name=victim")
	victim := awaitNamed(t, proxy, "victim")
	if err := victim.Inject(bounded(t), "SELECT pg_terminate_backend(pg_backend_pid())"); err == nil {
		t.Error("no error")
	}
	if err := conn.Ping(bounded(t)); err == nil {
		t.Error("the session lives")
	}
	<-victim.Done()
}

func TestNotificationsPassAnInjection(t *testing.T) {
	t.Parallel()
	conn, proxy := connect(t, "&application_name=listener")
	channel := pgtest.Shared(t).Schema(t) // a name that no other test has
	if _, err := conn.Exec(bounded(t), "LISTEN "+channel); err != nil {
		t.Fatal(err)
	}
	if err := awaitNamed(t, proxy, "listener").Inject(bounded(t), "NOTIFY "+channel); err != nil {
		t.Fatal(err)
	}
	notification, err := conn.WaitForNotification(bounded(t))
	if err != nil || notification.Channel != channel {
		t.Errorf("got %v, %v", notification, err)
	}
}

func TestCancelRequestPasses(t *testing.T) {
	t.Parallel()
	conn, proxy := connect(t, "&application_name=slow")
	awaitNamed(t, proxy, "slow")
	asleep := make(chan error, 1)
	go func() {
		_, err := conn.Exec(bounded(t), "SELECT pg_sleep(15)")
		asleep <- err
	}()
	watcher := pgtest.Shared(t).Conn(t)
	sleeping := "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'PgSleep')"
	for found := false; !found; {
		if err := watcher.QueryRow(bounded(t), sleeping, conn.PgConn().PID()).Scan(&found); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.PgConn().CancelRequest(bounded(t)); err != nil {
		t.Fatal(err)
	}
	var failure *pgconn.PgError
	if err := <-asleep; !errors.As(err, &failure) || failure.Code != "57014" {
		t.Errorf("got %v", err)
	}
}

// A request to cancel that is lost ends nothing but its own connection.
func TestCancelRequestIsLost(t *testing.T) {
	t.Parallel()
	conn, proxy := connect(t, "&application_name=slow")
	awaitNamed(t, proxy, "slow")
	proxy.LoseCancelRequests()
	watcher := pgtest.Shared(t).Conn(t)
	key := int64(conn.PgConn().PID())
	execute := func(sql string) {
		t.Helper()
		if _, err := watcher.Exec(bounded(t), sql, key); err != nil {
			t.Fatal(err)
		}
	}
	execute("SELECT pg_advisory_lock(4711, $1)")
	waited := make(chan error, 1)
	go func() {
		_, err := conn.Exec(bounded(t), "SELECT pg_advisory_lock(4711, $1)", key)
		waited <- err
	}()
	const waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $1 AND NOT granted)"
	for found := false; !found; {
		if err := watcher.QueryRow(bounded(t), waits, key).Scan(&found); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.PgConn().CancelRequest(bounded(t)); err != nil {
		t.Fatal(err)
	}
	execute("SELECT pg_advisory_unlock(4711, $1)")
	if err := <-waited; err != nil {
		t.Errorf("the statement ended with %v", err)
	}
}

func TestTheProxysFaultsReachASession(t *testing.T) {
	t.Parallel()
	conn, proxy := connect(t, "&application_name=victim")
	victim := awaitNamed(t, proxy, "victim")
	victim.Stall(faultwire.ToClient)
	answered := make(chan error, 1)
	go func() { answered <- conn.Ping(bounded(t)) }()
	select {
	case err := <-answered:
		t.Fatalf("the answer came: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	victim.Cut()
	if err := <-answered; err == nil {
		t.Error("no error after an RST")
	}
}
