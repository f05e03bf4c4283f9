package lease

import (
	"context"
	"database/sql"
	"time"

	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// pollResult is what the one row of news says, and when the next lease runs out.
type pollResult struct {
	vacancies, terms int64
	nextExpiry       sql.NullInt64 // microseconds from now; null if there is no session
}

// leaseExpired reports whether a lease has run out without anybody having noticed.
func (n pollResult) leaseExpired() bool { return n.nextExpiry.Valid && n.nextExpiry.Int64 <= 0 }

// poll reads the news.
func (b *Backend) poll(ctx context.Context) (n pollResult, err error) {
	err = b.db.Read(ctx, "look for news", func(ctx context.Context, on sqldb.Querier) error {
		return sqldb.ForEach(ctx, on, b.queries.poll, func(rows *sql.Rows) error {
			return rows.Scan(&n.vacancies, &n.terms, &n.nextExpiry)
		})
	})
	return n, err
}

// endExpired records the end of every session whose lease has run out, as those
// find who look for news, and announces it.
func (b *Backend) endExpired(ctx context.Context) error {
	return b.db.InTx(ctx, "record expired leases", func(ctx context.Context, on sqldb.Querier) error {
		result, err := on.ExecContext(ctx, b.queries.endAllExpired)
		if err != nil {
			return err
		}
		if ended, err := result.RowsAffected(); err != nil || ended == 0 {
			return err // another was first
		}
		return sqldb.Exec(ctx, on, b.queries.announceVacancy)
	})
}

// Listen implements [tenure.Listener]: it asks every poll interval. It only
// reads.
func (b *Backend) Listen(ctx context.Context, wake func()) error {
	ask := time.NewTicker(b.config.PollInterval)
	defer ask.Stop()
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
		case <-ask.C:
		}
	}
}
