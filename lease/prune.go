package lease

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// DefaultKeepHistory is how long terms that have ended are kept.
const DefaultKeepHistory = 90 * 24 * time.Hour

// How the history is kept short: some rows at a time, so that nobody waits for it.
const (
	pruneInterval = time.Hour
	prunePause    = 100 * time.Millisecond // between two batches
	pruneBatch    = 100                    // terms in one
)

// prune removes old terms from the history for as long as the session lives and
// its backend is open. All nodes do; what another one has removed is not found.
func (s *session) prune() {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	defer context.AfterFunc(s.backend.open, cancel)()
	// Some time after the start, so that nodes that start together do not prune
	// together, and that also those do that never live for long.
	pause := time.Minute + rand.N(9*time.Minute)
	for s.pause(ctx, pause) {
		pause = pruneInterval
		more, err := s.pruneOnce(ctx)
		if err != nil && ctx.Err() == nil {
			advice := "they are removed when that works again"
			if errors.Is(err, tenure.ErrPrivilege) {
				advice = "grant DELETE on the history: see tenure migrate grants"
			}
			s.log.Warn("old terms stay in the history for now", "error", err, "advice", advice)
		}
		if more {
			pause = prunePause
		}
	}
}

// pastTerm names a row of the history.
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
		return sqldb.ForEach(ctx, on, s.backend.queries.oldTerms, func(rows *sql.Rows) error {
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
			if err := sqldb.Exec(ctx, on, s.backend.queries.pruneTerm, t.role, t.number); err != nil {
				return err
			}
		}
		return nil
	})
	return err == nil && len(old) == pruneBatch, err
}
