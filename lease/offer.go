package lease

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// The kinds of the row of an offer and of the rows of its answers. Their column term has
// the number of the offer, and their column holder is 0: they are for the requester, which
// removes them.
const (
	kindOffer     = "offer"
	answerAccept  = "accept"
	answerDecline = "decline"
)

const (
	// offerTimeout bounds the wait for the answer of a target. The answer comes after one
	// poll interval of the target, or with its next heartbeat.
	offerTimeout = 4 * time.Second

	minOfferPoll, maxOfferPoll = 2 * time.Millisecond, 50 * time.Millisecond
)

// offer is a role offered to a session.
type offer struct {
	role   string
	number int64 // random
}

// offer asks the target of a hand-over whether it campaigns for the role, and returns
// an error if it does not or sends no answer in time.
func (b *Backend) offer(ctx context.Context, request tenure.Request) error {
	limited, cancel := context.WithTimeout(ctx, offerTimeout)
	defer cancel()
	o := offer{request.Role, 1 + rand.Int64N(1<<62)}
	if err := b.makeOffer(limited, o, request); err != nil {
		return err
	}
	kind, err := b.awaitAnswer(limited, o)
	if err == nil || ctx.Err() == nil {
		b.dropOffer(ctx, o)
	}
	switch {
	case err == nil && kind == answerAccept:
		return nil
	case err == nil:
		return fmt.Errorf("%w: %s does not campaign for %q", tenure.ErrNotActive, request.Target, o.role)
	case limited.Err() == nil || ctx.Err() != nil:
		return err
	}
	return fmt.Errorf("%w: %s did not answer within %v whether it campaigns for %q: %w",
		tenure.ErrNotActive, request.Target, offerTimeout, o.role, context.DeadlineExceeded)
}

// makeOffer records the offer and wakes the target.
func (b *Backend) makeOffer(ctx context.Context, o offer, request tenure.Request) error {
	return b.db.InTx(ctx, "request", func(ctx context.Context, on sqldb.Querier) error {
		var term, holder, target int64
		err := sqldb.ForEach(ctx, on, b.sql(holderQuery), func(rows *sql.Rows) error { return rows.Scan(&term, &holder) }, o.role)
		if err != nil {
			return err
		}
		if term == 0 {
			return fmt.Errorf("%w: %s", tenure.ErrNoLeader, o.role)
		}
		err = sqldb.ForEach(ctx, on, b.sql(liveNodeQuery), func(rows *sql.Rows) error { return rows.Scan(&target) }, request.Target.String())
		if err != nil {
			return err
		}
		if target == 0 {
			return fmt.Errorf("%w: %s", tenure.ErrUnknownNode, request.Target)
		}
		if err := sqldb.Exec(ctx, on, b.sql(pruneAnswersQuery)); err != nil {
			return err
		}
		err = sqldb.Exec(ctx, on, b.sql(requestQuery), kindOffer, o.role, o.number, target, request.Target.String(), request.By)
		if err != nil {
			return err
		}
		return sqldb.Exec(ctx, on, b.sql(announceVacancyQuery))
	})
}

// awaitAnswer polls for the answer to an offer.
func (b *Backend) awaitAnswer(ctx context.Context, o offer) (kind string, err error) {
	for pause := minOfferPoll; ; pause = min(2*pause, maxOfferPoll) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return "", fmt.Errorf("request: %w: %w", tenure.ErrConnection, context.Cause(ctx))
		}
		err := b.db.Read(ctx, "request", func(ctx context.Context, on sqldb.Querier) error {
			return sqldb.ForEach(ctx, on, b.sql(readAnswerQuery), func(rows *sql.Rows) error { return rows.Scan(&kind) }, o.role, o.number)
		})
		if err != nil || kind != "" {
			return kind, err
		}
	}
}

// dropOffer removes an offer and its answer. If it fails, a later offer removes them.
func (b *Backend) dropOffer(ctx context.Context, o offer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = b.db.InTx(ctx, "request", func(ctx context.Context, on sqldb.Querier) error {
		return sqldb.Exec(ctx, on, b.sql(dropOfferQuery), o.role, o.number)
	})
}

// answer records the answers to offers.
func (s *session) answer(ctx context.Context, on sqldb.Querier, offered []offer) error {
	for _, o := range offered {
		kind := answerAccept
		if campaigns := s.options.Campaigns; campaigns != nil && !campaigns(o.role) {
			kind = answerDecline
		}
		if err := sqldb.Exec(ctx, on, s.backend.sql(requestQuery), kind, o.role, o.number, 0, "", ""); err != nil {
			return err
		}
	}
	return nil
}
