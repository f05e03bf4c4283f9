package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// BenchmarkFailover measures the time from the closing of the leader's socket to
// the recorded beginning of the next term, for one role and for a thousand. For
// comparison, it also measures a connection that only waits for the lock.
func BenchmarkFailover(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		dsn := pgtest.Shared(b).DSN()
		waiter := pgtest.Conn(b, dsn)
		measure(b, func() time.Duration {
			holder := pgtest.Conn(b, dsn)
			if _, err := holder.Exec(context.Background(), "SELECT pg_advisory_lock(42)"); err != nil {
				b.Fatal(err)
			}
			start := make(chan time.Time, 1)
			time.AfterFunc(20*time.Millisecond, func() {
				start <- time.Now()
				holder.PgConn().Conn().Close()
			})
			if _, err := waiter.Exec(context.Background(), "SELECT pg_advisory_lock(42)"); err != nil {
				b.Fatal(err)
			}
			took := time.Since(<-start)
			if _, err := waiter.Exec(context.Background(), "SELECT pg_advisory_unlock(42)"); err != nil {
				b.Fatal(err)
			}
			return took
		})
	})
	for _, count := range []int{1, 1000} {
		b.Run(fmt.Sprintf("roles=%d", count), func(b *testing.B) {
			backend := newBackend(b)
			quiet := func(o *peerOptions) { o.logger = slog.New(slog.DiscardHandler) }
			roles := make([]string, count)
			for i := range roles {
				roles[i] = fmt.Sprintf("role-%d", i)
			}
			leader := open(b, backend, quiet)
			leader.try(roles...)
			measure(b, func() time.Duration {
				standby := open(b, backend, quiet)
				standby.try(roles...)
				standby.drain()
				start := make(chan time.Time, 1)
				dying := leader
				time.AfterFunc(20*time.Millisecond, func() {
					start <- time.Now()
					dying.network.Close()
				})
				for missing := roles; len(missing) > 0; {
					standby.wait(patience)
					var left []string
					for i, attempt := range standby.try(missing...) {
						if attempt.Outcome != tenure.OutcomeGranted {
							left = append(left, missing[i])
						}
					}
					if missing = left; len(missing) > 0 {
						standby.listener.Announce()
					}
				}
				took := time.Since(<-start)
				dying.Abort()
				leader = standby
				return took
			})
		})
	}
}

func measure(b *testing.B, once func() time.Duration) {
	var all []time.Duration
	for b.Loop() {
		all = append(all, once())
	}
	slices.Sort(all)
	at := func(q float64) float64 {
		return float64(all[min(len(all)-1, int(q*float64(len(all))))].Microseconds()) / 1000
	}
	b.ReportMetric(at(0.5), "ms-p50")
	b.ReportMetric(at(0.99), "ms-p99")
	b.ReportMetric(at(1), "ms-max")
	b.ReportMetric(0, "ns/op")
}
