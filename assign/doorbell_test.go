package assign_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/assign"
	"github.com/exactly-one/tenure/internal/doorbell"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/schema"
)

// Two commits that follow each other quickly wake an assigner up. Then commits do not notify
// it. An open transaction that saw it awake keeps it so for the test.
func TestAssignerThatIsAwakeIsNotRung(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	w.worker("a")
	config := w.config()
	config.MaxPerNode = 1 << 20
	w.run(w.assigner(w.scheduler("leader"), config))
	w.add(1, "")
	w.Await("the first", func() bool { return w.count(`state = 'assigned'`) == 1 })

	conn := w.Server.Conn(t)
	exec := func(sql string, args ...any) {
		pgtest.Exec(t, conn, sql, args...)
	}
	insert := "INSERT INTO " + config.Table.Sanitize() + " DEFAULT VALUES"
	w.Await("awake", func() bool {
		for range 3 {
			w.add(1, "")
		}
		exec("BEGIN")
		exec(insert)
		if one[int](w, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND pid = $1`, conn.PgConn().PID()) < doorbell.Slots {
			exec("ROLLBACK")
			return false
		}
		return true
	})
	listener := w.Server.Conn(t)
	channel := schema.Of(w.Backend).Channel(assign.Topic(config))
	pgtest.Exec(t, listener, "LISTEN "+pgx.Identifier{channel}.Sanitize())
	for range 50 {
		w.add(1, "")
	}
	pgtest.Exec(t, listener, "SELECT pg_notify($1, 'last')", channel)
	rings := 0
	for {
		notification, err := listener.WaitForNotification(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if notification.Payload == "last" {
			break
		}
		rings++
	}
	if rings > 0 {
		t.Errorf("%d notifications while the assigner was awake; want none", rings)
	}
	exec("COMMIT")
	w.Await("all", func() bool { return w.count(`state <> 'assigned'`) == 0 })
}
