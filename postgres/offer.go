package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
)

// The kinds of the row of an offer and of those that answer an offer. Their column term has the id of the
// offer, and their column node_id the nil UUID: they are for the requester, which
// removes them.
const (
	kindOffer     = "offer"
	answerAccept  = "accept"
	answerDecline = "decline"
)

const (
	// offerTimeout bounds the wait for the answer of a target. A target that is awake
	// answers in milliseconds; one whose notification was lost, with its next heartbeat.
	offerTimeout = 4 * time.Second

	minOfferPoll, maxOfferPoll = time.Millisecond, 20 * time.Millisecond
)

const (
	// A requester that gave up leaves the answer behind: the next offer removes it.
	// All offers whose targets are live and active and whose roles have leaders. Each role is
	// in it once.
	insertOffers = `
WITH pruned AS (
    DELETE FROM {requests}
    WHERE node_id = '00000000-0000-0000-0000-000000000000' AND requested_at NOT BETWEEN clock_timestamp() - interval '1 minute' AND clock_timestamp() + interval '1 minute'
), wanted AS MATERIALIZED (
    SELECT w.role, w.target, w.requester, (` + statusOfTarget + `) AS status, (
            SELECT l.term FROM {leaders} l WHERE l.role = w.role AND l.lease_until > clock_timestamp()
        ) AS term
    FROM unnest($1::text[], $2::text[]::uuid[], $3::text[]) AS w(role, target, requester)
), offer AS (
    INSERT INTO {requests} (kind, role, term, node_id, target, requested_by)
    SELECT 'offer', w.role, w.term, w.target, w.target, w.requester
    FROM wanted w
    WHERE w.status = 'active' AND w.term IS NOT NULL
    RETURNING id, role
), notified AS MATERIALIZED (
    SELECT pg_notify($4, '` + rolesOnly + `') WHERE EXISTS (SELECT FROM offer)
)
SELECT w.role, coalesce(w.status, ''), coalesce(o.id, 0)
FROM wanted w
LEFT JOIN offer o ON o.role = w.role
LEFT JOIN notified ON true`

	takeAnswers = `
DELETE FROM {requests}
WHERE node_id = '00000000-0000-0000-0000-000000000000' AND kind IN ('accept', 'decline') AND term = ANY ($1)
RETURNING term, kind`

	withdrawOffer = `DELETE FROM {requests} WHERE id = $1`
)

// offer asks the target of a hand-over whether it campaigns for the role, and returns
// an error if it does not or sends no answer in time.
func (b *Backend) offer(ctx context.Context, request tenure.Request) error {
	waiting, giveUp := context.WithCancel(ctx)
	defer giveUp()
	p := &pendingOffer{request: request, ended: waiting.Done(), sent: make(chan struct{}), done: make(chan struct{})}
	b.offers.add(b, p)
	timeout := time.NewTimer(2 * offerTimeout) // the wait for an answer begins when the offer is recorded
	defer timeout.Stop()
	for sent := p.sent; waiting.Err() == nil; {
		select {
		case <-sent:
			sent = nil
			timeout.Reset(offerTimeout)
		case <-p.done:
			return p.err
		case <-timeout.C:
			giveUp()
		case <-waiting.Done():
		}
	}
	b.withdraw(ctx, p.id.Load())
	if ctx.Err() != nil {
		return fmt.Errorf("request: %w: %w", tenure.ErrConnection, context.Cause(ctx))
	}
	return fmt.Errorf("%w: %s did not answer within %v whether it campaigns for %q: %w",
		tenure.ErrNotActive, request.Target, offerTimeout, request.Role, context.DeadlineExceeded)
}

// withdraw removes an offer without an answer, so that the target need not answer.
func (b *Backend) withdraw(ctx context.Context, id int64) {
	if id == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = b.reader.Ask(ctx, "request", func(ctx context.Context, conn *pgx.Conn) error { // the next session of the target removes it otherwise
		_, err := conn.Exec(ctx, b.names.SQL(withdrawOffer), id)
		return err
	})
}

// offers are the offers that a session has taken and must answer.
type offers struct {
	ids            []int64
	roles, answers []string
}

func (o *offers) add(s *session, id int64, role string) {
	answer := answerAccept
	if campaigns := s.opening.Campaigns; campaigns != nil && !campaigns(role) {
		answer = answerDecline
	}
	o.ids, o.roles, o.answers = append(o.ids, id), append(o.roles, role), append(o.answers, answer)
}

// answer records the answers. If it fails, the requesters get none and the leaders
// keep the roles.
func (s *session) answer(o offers) error {
	if len(o.ids) == 0 {
		return nil
	}
	err := s.query(stmtAnswer, nil, o.answers, o.roles, o.ids, uuid.Nil)
	if err != nil && lostOnly(err) == nil {
		s.log.Warn("answering offers of roles failed", "roles", o.roles, "error", err)
	}
	return lostOnly(err)
}
