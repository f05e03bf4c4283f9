package assign_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/assign"
	"github.com/exactly-one/tenure/internal/schema"
)

// While rows are added all the time, hardly any commit notifies the leader.
func TestBusyAssignerIsRungRarely(t *testing.T) {
	t.Parallel()
	const rows = 1000
	w := newJobs(t)
	w.worker("a")
	config := w.config()
	config.MaxPerNode = 2 * rows
	w.run(w.assigner(w.scheduler("leader"), config))
	w.add(1, "")
	w.await("the first", func() bool { return w.count(`state = 'assigned'`) == 1 })

	conn := w.server.Conn(t)
	channel := schema.Of(w.backend).Channel(assign.Topic(config))
	if _, err := conn.Exec(t.Context(), "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		t.Fatal(err)
	}
	for range rows {
		w.add(1, "")
	}
	w.await("all", func() bool { return w.count(`state = 'assigned'`) == rows+1 })
	if _, err := conn.Exec(t.Context(), "SELECT pg_notify($1, 'last')", channel); err != nil {
		t.Fatal(err)
	}
	for rings := 0; ; rings++ {
		notification, err := conn.WaitForNotification(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if notification.Payload == "last" {
			if rings > rows/10 {
				t.Errorf("%d of %d commits notified while the assigner was busy; want at most %d", rings, rows, rows/10)
			}
			return
		}
	}
}
