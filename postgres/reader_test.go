package postgres

import (
	"context"
	"sync"
	"testing"
	"time"
)

// The connection for questions goes when nobody asks, and comes back.
func TestReaderRests(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	open(t, b)
	b.reader.idle = 100 * time.Millisecond
	ask := func() {
		if _, err := b.Leaders(context.Background()); err != nil {
			t.Error(err)
		}
	}
	for range 3 {
		ask()
		conn := <-b.reader.slot
		pid := conn.PgConn().PID()
		b.reader.slot <- conn
		eventually(t, b, "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)", pid)
	}

	// Nobody's connection is closed under a question.
	b.reader.idle = time.Nanosecond
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 50 {
				ask()
			}
		})
	}
	group.Wait()
	b.reader.close()
	if _, err := b.Leaders(context.Background()); err == nil {
		t.Error("a closed reader answers")
	}
}
