package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// BenchmarkOpening measures the processor time of the server for a session that is opened
// and closed, and for comparison that of two bare connections with one statement each.
func BenchmarkOpening(b *testing.B) {
	server := pgtest.Start(b, pgtest.Options{Settings: map[string]string{"autovacuum": "off"}})
	backend := backendOn(b, server.DSN(), Config{})
	quiet := func(o *peerOptions) { o.logger = slog.New(slog.DiscardHandler) }
	open(b, backend, quiet).Abort() // creates the tables
	for _, c := range []struct {
		name string
		once func()
	}{
		{"bare pair", func() {
			for range 2 {
				conn, err := pgx.Connect(context.Background(), server.DSN())
				if err != nil {
					b.Fatal(err)
				}
				if _, err := conn.Exec(context.Background(), "SELECT 1"); err != nil {
					b.Fatal(err)
				}
				_ = conn.Close(context.Background()) // the server's work is counted in any case
			}
		}},
		{"session", func() {
			p := open(b, backend, quiet)
			p.beat()
			if err := p.Close(); err != nil {
				b.Fatal(err)
			}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			awaitAlone(b, server)
			before, openings := processorTime(b, server.PID()), 0
			for b.Loop() {
				c.once()
				openings++
			}
			awaitAlone(b, server)
			b.ReportMetric(float64((processorTime(b, server.PID())-before).Microseconds())/1000/float64(openings), "server-ms/op")
		})
	}
}

// awaitAlone waits until the server has no session but one, whose processor time does not
// count before it ends.
func awaitAlone(b *testing.B, server *pgtest.Server) {
	b.Helper()
	conn := pgtest.Conn(b, server.DSN())
	for alone := false; !alone; {
		err := conn.QueryRow(context.Background(),
			"SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'client backend'").Scan(&alone)
		if err != nil {
			b.Fatal(err)
		}
	}
	_ = conn.Close(context.Background()) // as above
}

// processorTime returns the time of a process and of its children that have ended.
func processorTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	const tick = 10 * time.Millisecond // of the kernel's counters, on all platforms of Go
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), ") ") // the name may have spaces
	var sum, one int64
	for _, field := range strings.Fields(after)[11:15] {
		if _, err := fmt.Sscan(field, &one); err != nil {
			b.Fatal(err)
		}
		sum += one
	}
	return time.Duration(sum) * tick
}

// BenchmarkHeartbeat measures the processor time of the server for a heartbeat, and for
// comparison that of an update of the same row without anything else.
func BenchmarkHeartbeat(b *testing.B) {
	server := pgtest.Start(b, pgtest.Options{Settings: map[string]string{"autovacuum": "off"}})
	backend := backendOn(b, server.DSN(), Config{})
	quiet := func(o *peerOptions) { o.logger, o.timing.Lease = slog.New(slog.DiscardHandler), time.Hour }
	p := open(b, backend, quiet)
	for range 9 {
		open(b, backend, quiet)
	}
	measure := func(b *testing.B, conn *pgx.Conn, once func()) {
		for range 10 {
			once()
		}
		before, beats := scheduledTime(b, conn.PgConn().PID()), 0
		for b.Loop() {
			once()
			beats++
		}
		b.ReportMetric(float64((scheduledTime(b, conn.PgConn().PID())-before).Microseconds())/float64(beats), "server-us/op")
	}
	b.Run("bare update", func(b *testing.B) {
		conn := pgtest.Conn(b, server.DSN())
		bare := backend.names.SQL("UPDATE {nodes} SET last_heartbeat = clock_timestamp() WHERE id = $1")
		measure(b, conn, func() {
			if _, err := conn.Exec(context.Background(), bare, p.id); err != nil {
				b.Fatal(err)
			}
		})
	})
	b.Run("heartbeat", func(b *testing.B) {
		measure(b, p.conn, func() { p.beat() })
	})
}

// scheduledTime returns the time of a process.
func scheduledTime(b *testing.B, pid uint32) (used time.Duration) {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := fmt.Sscan(string(text), &used); err != nil {
		b.Fatal(err)
	}
	return used
}
