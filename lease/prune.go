package lease

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// DefaultKeepHistory is the default of [Config].KeepHistory.
const DefaultKeepHistory = 90 * 24 * time.Hour

// Old terms are removed in small batches: no other transaction waits long.
const (
	pruneInterval = time.Hour
	prunePause    = 100 * time.Millisecond // between two batches
	pruneBatch    = 100                    // terms in one
)

// prune removes old terms from the history until the session ends or its backend is
// closed. All nodes do so.
func (s *session) prune() {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	defer context.AfterFunc(s.backend.ctx, cancel)()
	// The first delay is random: nodes started together prune at different times. It is
	// short: short-lived nodes prune too.
	pause := time.Minute + rand.N(9*time.Minute)
	for s.pause(ctx, pause) {
		pause = pruneInterval
		more, err := s.pruneOnce(ctx)
		if err != nil && ctx.Err() == nil {
			advice := "they are removed once that works again"
			if errors.Is(err, dberr.ErrPrivilege) {
				advice = "grant DELETE on the history: see tenure migrate grants"
			}
			s.log.Warn("cannot remove old terms from the history", "error", err, "advice", advice)
		}
		if more {
			pause = prunePause
		}
	}
}

// pruneSessions removes sessions ended long ago. It reads them first: on MySQL a DELETE
// would lock the rows of roles it examines.
func (b *Backend) pruneSessions(ctx context.Context, on sqldb.Querier) error {
	var old []int64
	err := sqldb.ForEach(ctx, on, b.sql(oldSessionsQuery), func(rows *sql.Rows) error {
		var incarnation int64
		err := rows.Scan(&incarnation)
		old = append(old, incarnation)
		return err
	}, keepSessions.Microseconds())
	if err != nil {
		return err
	}
	return sqldb.InLists(b.db.Dialect, b.sql(pruneSessionsQuery), old, nil, func(query string, args []any) error {
		return sqldb.Exec(ctx, on, query, args...)
	})
}

// pastTerm is the key of a row of the history.
type pastTerm struct {
	role   string
	number int64
}

// pruneOnce removes a batch of old terms and reports whether there may be more.
func (s *session) pruneOnce(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, max(s.options.Timing.RefreshInterval, minTimeout))
	defer cancel()
	var old []pastTerm
	err = s.backend.db.Read(ctx, "read the old terms", func(ctx context.Context, on sqldb.Querier) error {
		old = nil
		return sqldb.ForEach(ctx, on, s.backend.sql(oldTermsQuery), func(rows *sql.Rows) error {
			var t pastTerm
			err := rows.Scan(&t.role, &t.number)
			old = append(old, t)
			return err
		}, s.backend.config.KeepHistory.Microseconds(), pruneBatch)
	})
	if err != nil || len(old) == 0 {
		return false, err
	}
	err = s.backend.db.InTx(ctx, "remove old terms", func(ctx context.Context, on sqldb.Querier) error {
		for _, t := range old {
			if err := sqldb.Exec(ctx, on, s.backend.sql(pruneTermQuery), t.role, t.number); err != nil {
				return err
			}
		}
		return nil
	})
	return err == nil && len(old) == pruneBatch, err
}
