package assign_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/assign"
	"github.com/exactly-one/tenure/internal/doorbell"
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
	w.await("the first", func() bool { return w.count(`state = 'assigned'`) == 1 })

	conn := w.server.Conn(t)
	exec := func(sql string, args ...any) {
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	insert := "INSERT INTO " + config.Table.Sanitize() + " DEFAULT VALUES"
	w.await("awake", func() bool {
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
	listener := w.server.Conn(t)
	channel := schema.Of(w.backend).Channel(assign.Topic(config))
	if _, err := listener.Exec(t.Context(), "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		w.add(1, "")
	}
	if _, err := listener.Exec(t.Context(), "SELECT pg_notify($1, 'last')", channel); err != nil {
		t.Fatal(err)
	}
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
	w.await("all", func() bool { return w.count(`state <> 'assigned'`) == 0 })
}
