package lease

import (
	"context"
	"database/sql"
	"time"

	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// news is what the one row of news says, and when the next lease runs out.
type news struct {
	vacancies, terms int64
	nextExpiry       sql.NullInt64 // microseconds from now; null if there is no session
}

// expired reports whether a lease has run out without anybody having noticed.
func (n news) expired() bool { return n.nextExpiry.Valid && n.nextExpiry.Int64 <= 0 }

// look reads the news.
func (b *Backend) look(ctx context.Context) (n news, err error) {
	err = b.db.Read(ctx, "look for news", func(ctx context.Context, on sqldb.Querier) error {
		return sqldb.ForEach(ctx, on, b.queries.look, func(rows *sql.Rows) error {
			return rows.Scan(&n.vacancies, &n.terms, &n.nextExpiry)
		})
	})
	return n, err
}

// expire records the end of every session whose lease has run out, as those
// find who look for news, and announces it.
func (b *Backend) expire(ctx context.Context) error {
	return b.db.InTx(ctx, "record expired leases", func(ctx context.Context, on sqldb.Querier) error {
		result, err := on.ExecContext(ctx, b.queries.expireAll)
		if err != nil {
			return err
		}
		if ended, err := result.RowsAffected(); err != nil || ended == 0 {
			return err // another was first
		}
		return sqldb.Exec(ctx, on, b.queries.vacancy)
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
	var known news
	for first := true; ; first = false {
		if !w.quiet(ctx) {
			asked := w.now()
			found, err := b.look(ctx)
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil:
				return err
			case first || found.vacancies != known.vacancies || found.terms != known.terms || found.expired() != known.expired():
				wake()
			}
			known = found
			w.looked(found, asked)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ask.C:
		}
	}
}
