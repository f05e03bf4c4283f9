package acceptance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// What the database's administrators set for the nodes' user does not change
// how elections work; above all, no number comes back after a crash.
func TestUserDefaultsDoNotChangeElections(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Durable: true, Settings: map[string]string{
		"wal_writer_delay": "10s", // what is not flushed at the commit is lost
	}})
	admin := server.Conn(t)
	execute(t, admin, "CREATE ROLE node SUPERUSER LOGIN")
	for name, value := range map[string]string{
		"synchronous_commit":            "off",
		"default_transaction_read_only": "on",
		"default_transaction_isolation": "serializable",
		"statement_timeout":             "1s",
		"lock_timeout":                  "1ms",
		"idle_session_timeout":          "700ms",
		"client_min_messages":           "error",
	} {
		execute(t, admin, fmt.Sprintf("ALTER ROLE node SET %s = '%s'", name, value))
	}
	c := clusterOn(t, server.DSNFor("node", "postgres"), "public")
	one, two := c.join("one"), c.join("two")
	_, term := c.someoneElse(0, one, two)
	eventually(t, admin, // longer than any of the timeouts
		"SELECT acquired_at < clock_timestamp() - interval '1.5 s' FROM "+c.quoted("terms")+" WHERE role = $1", role)
	if !term.Valid() {
		t.Error("the first term ended on its own")
	}
	for range 3 {
		from, to := one, two
		if term.NodeID() == two.ID() {
			from, to = two, one
		}
		giveBack(t, from, to)
		_, term = c.someoneElse(term.Number(), one, two)
		server.Restart(t, "immediate")
		before := term
		if _, term = c.someoneElse(before.Number(), one, two); term.Number() <= before.Number() {
			t.Errorf("Invariant 2: term %d came after term %d", term.Number(), before.Number())
		}
	}
}

// Nodes that wait for each other neither hold back the cleaning of dead rows nor
// fill the server's log.
func TestWaitingNodesDoNotBlockVacuumOrFillLog(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	const (
		period = time.Second
		length = 8 * period
	)
	server, c := newServer(t, pgtest.Options{Settings: map[string]string{
		"log_lock_waits": "on", "deadlock_timeout": "200ms",
	}})
	c.db.WatchPeriod = period
	one := c.join("one")
	term := one.leads()
	c.join("two")
	c.join("three")
	worker, admin := server.Conn(t), server.Conn(t)
	execute(t, worker, "CREATE TABLE work (n int)")

	const horizons = `
		SELECT pid, application_name, backend_xmin::text::bigint
		FROM pg_stat_activity
		WHERE application_name LIKE 'tenure %' AND backend_xmin IS NOT NULL`
	type pin struct {
		xmin  int64
		since time.Time
	}
	pins, seen := map[int]pin{}, map[string]bool{}
	longest := time.Duration(0)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for begun := time.Now(); time.Since(begun) < length; <-tick.C {
		execute(t, worker, "INSERT INTO work VALUES (1)")
		rows, err := admin.Query(t.Context(), horizons)
		if err != nil {
			t.Fatal(err)
		}
		held := map[int]pin{}
		for rows.Next() {
			var (
				pid  int
				name string
				now  = pin{since: time.Now()}
			)
			if err := rows.Scan(&pid, &name, &now.xmin); err != nil {
				t.Fatal(err)
			}
			if before, ok := pins[pid]; ok && before.xmin == now.xmin {
				now = before
			}
			longest = max(longest, time.Since(now.since))
			held[pid], seen[name] = now, true
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		pins = held
	}
	t.Logf("no connection of %v pinned a snapshot for longer than %v, with a watch period of %v", seen, longest.Round(time.Millisecond), period)
	if longest > period+slack {
		t.Errorf("Invariant 6: a connection held back the horizon for %v; one call of the watch lasts at most %v", longest, period)
	}
	if len(seen) < 2 {
		t.Errorf("only %v were seen with a snapshot: the test looks at the wrong moments", seen)
	}
	if !term.Valid() {
		t.Error("the leader lost its term")
	}
	log, err := os.ReadFile(filepath.Join(filepath.Dir(server.Dir), "log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "] tenure ") {
			t.Errorf("the server's log: %s", line)
		}
	}
}
