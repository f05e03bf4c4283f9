package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgdial"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres/internal/link"
)

// Settings of a database user, a database or an administrator must not change
// how elections work.
func TestSettingsAreNotInherited(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	owner := backendOn(t, server.DSN(), Config{})
	if err := owner.Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}
	dsn := user(t, server, "node")
	exec(t, owner, owner.NodeGrants("node"))
	for name, value := range map[string]string{
		"synchronous_commit":                  "off",
		"default_transaction_read_only":       "on",
		"default_transaction_isolation":       "serializable",
		"default_transaction_deferrable":      "on",
		"statement_timeout":                   "1s",
		"lock_timeout":                        "1ms",
		"idle_session_timeout":                "1h",
		"idle_in_transaction_session_timeout": "1h",
		"client_min_messages":                 "error",
		"search_path":                         "elsewhere",
		"plan_cache_mode":                     "force_custom_plan",
	} {
		exec(t, owner, fmt.Sprintf("ALTER ROLE node SET %s = %s", name, schema.Literal(value)))
	}
	b := backendOn(t, dsn, Config{})
	first, second := open(t, b), open(t, b)
	first.take("scheduler")
	second.refused("scheduler")
	for name, want := range map[string]string{
		"synchronous_commit":                  "on",
		"default_transaction_read_only":       "off",
		"default_transaction_isolation":       "read committed",
		"default_transaction_deferrable":      "off",
		"statement_timeout":                   "1500ms",
		"lock_timeout":                        "1500ms",
		"idle_session_timeout":                "10s",
		"idle_in_transaction_session_timeout": "10s",
		"client_connection_check_interval":    "1s",
		"client_min_messages":                 "warning",
		"tcp_user_timeout":                    "0", // not TCP: a local socket
		pgdial.IncarnationSetting:             fmt.Sprint(first.Incarnation()),
	} {
		var got string
		if err := first.conn.QueryRow(context.Background(), "SELECT current_setting($1)", name).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if name == "tcp_user_timeout" && server.Host[0] != '/' {
			want = "20000"
		}
		if got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}

	// The watch outlives the statement timeout of the database user.
	second.drain()
	eventually(t, owner, `SELECT now() - query_start > interval '1.2 s' FROM pg_stat_activity WHERE application_name LIKE '%watch' AND pid > $1`, 0)
	first.network.Close()
	second.win("scheduler")
}

// The wait of a watch connection must not hold back the cleaning of dead rows.
func TestWatchLetsTheHorizonAdvance(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	log := new(logBuffer)
	b := backendOn(t, server.DSN(), Config{Schema: server.Schema(t), WatchPeriod: 300 * time.Millisecond})
	open(t, b)
	watching := open(t, b, logTo(log))
	const horizon = `SELECT coalesce(min(backend_xmin::text::bigint), 0) FROM pg_stat_activity WHERE application_name = $1`
	name := link.ApplicationName("tenure", watching.opening.Node.Name+" watch")
	first := row[int64](t, b, horizon, name)
	eventually(t, b, "SELECT backend_xmin IS NOT NULL FROM pg_stat_activity WHERE application_name = $1", name)
	for range 5 { // transaction ids increase
		exec(t, b, "SELECT pg_current_xact_id()")
	}
	eventually(t, b, "SELECT backend_xmin::text::bigint > $2 FROM pg_stat_activity WHERE application_name = $1", name, first)
	if log.contains("watch connection failed") {
		t.Error("the watch connection failed during the test")
	}
	if strings.Contains(server.Log(), "still waiting for") {
		t.Error("the server's log reports the wait")
	}
}

// If an operator cancels a wait for a synchronous standby, the statement looks
// successful, with a warning.
func TestCanceledWaitForReplicaIsNoSuccess(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	b := backendOn(t, server.DSN(), Config{})
	p := open(t, b)
	p.take("scheduler")
	server.Configure(t, map[string]string{"synchronous_standby_names": "nobody"})
	admin := server.Conn(t)
	if _, err := admin.Exec(context.Background(), "SET synchronous_commit = local"); err != nil {
		t.Fatal(err)
	}
	canceled := func(call func() error) error {
		t.Helper()
		done := make(chan error, 1)
		go func() { done <- call() }()
		const cancel = `SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'SyncRep'`
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for deadline := time.Now().Add(patience); ; <-tick.C {
			select {
			case err := <-done:
				return err
			default:
			}
			if _, err := admin.Exec(context.Background(), cancel, p.listener.pid); err != nil {
				t.Fatal(err)
			}
			if time.Now().After(deadline) {
				t.Fatal("the call did not return")
			}
		}
	}
	var err error
	for deadline := time.Now().Add(patience); err == nil; { // commits begin to wait a little later
		err = canceled(func() error { _, err := p.Heartbeat(tenure.Load{}); return err })
		if time.Now().After(deadline) {
			t.Fatal("no heartbeat ever failed")
		}
	}
	if errors.Is(err, tenure.ErrSessionLost) {
		t.Errorf("heartbeat: %v; want an error that the session survives", err)
	}
}

// A term begins without waiting for the disk or for a synchronous replica, as long
// as the node trusts its session.
func TestTermBeginsWithoutReplica(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	b := backendOn(t, server.DSN(), Config{})
	p := open(t, b)
	p.take("scheduler")
	p.release("scheduler", history.EndResigned)
	admin := server.Conn(t)
	server.Configure(t, map[string]string{"synchronous_standby_names": "nobody"})
	for deadline := time.Now().Add(patience); ; { // commits begin to wait a little later
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		_, err := admin.Exec(ctx, "CREATE TABLE IF NOT EXISTS waits (); DROP TABLE waits")
		cancel()
		if err != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no commit ever waited for the replica")
		}
	}
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		p.try("scheduler")
	}()
	select {
	case <-taken:
	case <-time.After(patience):
		t.Error("the term waited for the replica")
		p.Abort()
		<-taken
	}
}

func TestWatchConnectionIsOpenedAgain(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	first, second, third := open(t, b), open(t, b), open(t, b)
	first.take("scheduler")
	second.drain()
	const end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1"
	name := link.ApplicationName("tenure", second.opening.Node.Name+" watch")
	before := row[int32](t, b, "SELECT pid FROM pg_stat_activity WHERE application_name = $1", name)
	exec(t, b, end, name)
	second.refused("scheduler") // the session itself continues
	eventually(t, b, "SELECT pid <> $2 FROM pg_stat_activity WHERE application_name = $1", name, before)
	second.drain()
	third.drain()
	first.network.Close()
	second.win("scheduler")
}

// While the watch connection is down, an attempt looks for silent nodes, also before the
// next heartbeat does. The server does not end the silent session, which is not idle.
func TestSessionReapsWhileWatchIsDown(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	b := newBackend(t)
	silent, other := open(t, b, brief), open(t, b)
	silent.take("scheduler")
	other.watch.leave()
	other.watch.down.Store(true)
	silent.watch.leave()
	last := silent.stick()
	const bound = stuckLease + time.Second // the margin of the other node
	for other.try("scheduler")[0].Outcome != tenure.OutcomeGranted {
		if took := time.Since(last); took > bound+stuckLease { // what a busy machine may add
			t.Fatalf("the role was not free %v after the last heartbeat; the bound is %v", took, bound)
		}
		other.wait(timing().CheckInterval)
	}
	if took := time.Since(last); took < stuckLease {
		t.Errorf("the role was free %v after the last heartbeat; want it reserved for the lease of %v", took, stuckLease)
	}
}

// The only node left has lost its watch connection, and its earlier session is
// stuck with the lock.
func TestSessionReapsItsEarlierSessionWhileWatchIsDown(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	b := newBackend(t)
	earlier := open(t, b, brief)
	earlier.take("scheduler")
	earlier.watch.leave()
	earlier.stick()
	later := open(t, b, brief, func(o *peerOptions) { o.id = earlier.id })
	later.watch.leave()
	later.watch.down.Store(true)
	later.refused("scheduler")
	later.win("scheduler")
}

func TestPrimaryIsFoundAmongSeveralHosts(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	replica := primary.Replica(t, pgtest.ReplicaOptions{})
	b := backendOn(t, replica.DSN(), Config{})
	if _, err := tryOpen(t, b); !errors.Is(err, dberr.ErrInRecovery) {
		t.Errorf("a replica alone: %v; want ErrInRecovery", err)
	}
	hosts := func(a, b *pgtest.Server) string {
		return fmt.Sprintf("host=%s,%s port=%d,%d user=postgres dbname=postgres sslmode=disable", a.Host, b.Host, a.Port, b.Port)
	}
	open(t, backendOn(t, hosts(replica, primary), Config{})).take("scheduler")
	primary.Stop(t, "fast")
	_, err := tryOpen(t, backendOn(t, hosts(replica, primary), Config{}))
	if !errors.Is(err, tenure.ErrConnection) || errors.Is(err, tenure.ErrRefused) {
		t.Errorf("a replica, and a primary that is down: %v; want an error that may pass", err)
	}
}

func TestConnectFunctionOpensAllConnections(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	var calls atomic.Int32
	b := backendOn(t, "postgres://nobody@nowhere/none", Config{
		Schema: server.Schema(t),
		Connect: func(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
			calls.Add(1)
			right, err := pgx.ParseConfig(server.DSN())
			if err != nil {
				return nil, err
			}
			config.Host, config.Port, config.User, config.Database = right.Host, right.Port, right.User, right.Database
			config.TLSConfig, config.Fallbacks = nil, nil
			return pgx.ConnectConfig(ctx, config)
		},
	})
	p := open(t, b)
	p.take("scheduler")
	if leaders, err := b.Leaders(context.Background()); err != nil || len(leaders) != 1 {
		t.Errorf("leaders: %v, %v; want one", leaders, err)
	}
	if calls := calls.Load(); calls != 3 {
		t.Errorf("it was called %d times, want 3", calls)
	}
}
