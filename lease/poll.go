package lease

import (
	"context"
	"database/sql"
	"time"

	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// pollResult is the row of counters and the time until the next lease expires.
type pollResult struct {
	vacancies, terms int64
	nextExpiry       sql.NullInt64 // microseconds from the time of the poll; null if there is no session
}

// leaseExpired reports whether a lease has expired and the end of its session is not
// recorded yet.
func (n pollResult) leaseExpired() bool { return n.nextExpiry.Valid && n.nextExpiry.Int64 <= 0 }

// poll reads the row of counters.
func (b *Backend) poll(ctx context.Context) (n pollResult, err error) {
	err = b.db.Read(ctx, "poll for changes", func(ctx context.Context, on sqldb.Querier) error {
		return sqldb.ForEach(ctx, on, b.sql(pollQuery), func(rows *sql.Rows) error {
			return rows.Scan(&n.vacancies, &n.terms, &n.nextExpiry)
		})
	})
	return n, err
}

// endExpired records the end of every session with an expired lease, and announces the
// vacancies.
func (b *Backend) endExpired(ctx context.Context) error {
	return b.db.InTx(ctx, "record expired leases", func(ctx context.Context, on sqldb.Querier) error {
		result, err := on.ExecContext(ctx, b.sql(endAllExpiredQuery))
		if err != nil {
			return err
		}
		if ended, err := result.RowsAffected(); err != nil || ended == 0 {
			return err // another node was first
		}
		return sqldb.Exec(ctx, on, b.sql(announceVacancyQuery))
	})
}

// Listen implements [tenure.Listener]. It polls at every poll interval and writes
// nothing.
func (b *Backend) Listen(ctx context.Context, wake func()) error {
	tick := time.NewTicker(b.config.PollInterval)
	defer tick.Stop()
	begun := time.Now()
	w := &watch{backend: b, now: func() time.Duration { return time.Since(begun) }}
	defer w.close()
	var known pollResult
	for first := true; ; first = false {
		if !w.unchanged(ctx) {
			asked := w.now()
			found, err := b.poll(ctx)
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil:
				return err
			case first || found.vacancies != known.vacancies || found.terms != known.terms || found.leaseExpired() != known.leaseExpired():
				wake()
			}
			known = found
			w.recordPoll(found, asked)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
