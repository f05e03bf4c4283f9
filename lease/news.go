package lease

import (
	"context"
	"database/sql"
	"time"
)

// news is what the one row of news says, and how many sessions have run out
// without anybody having noticed.
type news struct {
	vacancies, terms int64
	expired          int
}

// look reads the news.
func (b *Backend) look(ctx context.Context) (n news, err error) {
	err = b.read(ctx, "look for news", func(ctx context.Context, on querier) error {
		return forEach(ctx, on, b.queries.look, func(rows *sql.Rows) error {
			return rows.Scan(&n.vacancies, &n.terms, &n.expired)
		})
	})
	return n, err
}

// expire records the end of every session whose lease has run out, as those
// find who look for news, and announces it.
func (b *Backend) expire(ctx context.Context) error {
	return b.atomically(ctx, "record expired leases", func(ctx context.Context, on querier) error {
		result, err := on.ExecContext(ctx, b.queries.expireAll)
		if err != nil {
			return err
		}
		if ended, err := result.RowsAffected(); err != nil || ended == 0 {
			return err // another was first
		}
		return exec(ctx, on, b.queries.vacancy)
	})
}

// exec runs a statement without a result.
func exec(ctx context.Context, on querier, statement string, args ...any) error {
	_, err := on.ExecContext(ctx, statement, args...)
	return err
}

// Listen implements [tenure.Listener]: it asks every poll interval. It only
// reads.
func (b *Backend) Listen(ctx context.Context, wake func()) error {
	ask := time.NewTicker(b.config.PollInterval)
	defer ask.Stop()
	var known news
	for first := true; ; first = false {
		found, err := b.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case first || found != known:
			known = found
			wake()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ask.C:
		}
	}
}
