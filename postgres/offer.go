package postgres

import (
	"context"
	"errors"
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
	insertOffer = `
WITH pruned AS (
    DELETE FROM {requests}
    WHERE node_id = '00000000-0000-0000-0000-000000000000' AND requested_at NOT BETWEEN clock_timestamp() - interval '1 minute' AND clock_timestamp() + interval '1 minute'
), offer AS (
    INSERT INTO {requests} (kind, role, term, node_id, target, requested_by)
    SELECT 'offer', l.role, l.term, $2, $2, $3
    FROM {leaders} l
    WHERE l.role = $1 AND l.lease_until > clock_timestamp()
    RETURNING id
)
SELECT id, pg_notify($4, '` + rolesOnly + `') FROM offer`

	takeAnswer = `
DELETE FROM {requests}
WHERE node_id = '00000000-0000-0000-0000-000000000000' AND kind IN ('accept', 'decline') AND role = $1 AND term = $2
RETURNING kind`

	withdrawOffer = `DELETE FROM {requests} WHERE id = $1`
)

// offer asks the target of a hand-over whether it campaigns for the role, and returns
// an error if it does not or sends no answer in time.
func (b *Backend) offer(ctx context.Context, request tenure.Request) error {
	limited, cancel := context.WithTimeout(ctx, offerTimeout)
	defer cancel()
	var id int64
	err := b.reader.ask(limited, "request", func(ctx context.Context, conn *pgx.Conn) error {
		if err := b.checkActive(ctx, conn, request.Target); err != nil {
			return err
		}
		err := conn.QueryRow(ctx, b.names.sql(insertOffer), request.Role, request.Target, request.By, b.names.channel()).Scan(&id, nil)
		if errors.Is(err, pgx.ErrNoRows) {
			return tenure.ErrNoLeader
		}
		return err
	})
	if err != nil {
		return err
	}
	kind, err := b.awaitAnswer(limited, request.Role, id)
	switch {
	case err == nil && kind == answerAccept:
		return nil
	case err == nil:
		return fmt.Errorf("%w: %s does not campaign for %q", tenure.ErrNotActive, request.Target, request.Role)
	case limited.Err() == nil:
		return err
	}
	b.withdraw(ctx, id)
	if ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: %s did not answer within %v whether it campaigns for %q", tenure.ErrNotActive, request.Target, offerTimeout, request.Role)
}

// awaitAnswer polls for the answer to an offer. It holds the connection of the reader
// for one poll at a time, because other callers need it.
func (b *Backend) awaitAnswer(ctx context.Context, role string, id int64) (kind string, err error) {
	for pause := minOfferPoll; ; pause = min(2*pause, maxOfferPoll) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return "", fmt.Errorf("request: %w: %w", tenure.ErrConnection, context.Cause(ctx))
		}
		err := b.reader.ask(ctx, "request", func(ctx context.Context, conn *pgx.Conn) error {
			err := conn.QueryRow(ctx, b.names.sql(takeAnswer), role, id).Scan(&kind)
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			return err
		})
		if err != nil || kind != "" {
			return kind, err
		}
	}
}

// withdraw removes an offer without an answer, so that the target need not answer.
func (b *Backend) withdraw(ctx context.Context, id int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = b.reader.ask(ctx, "request", func(ctx context.Context, conn *pgx.Conn) error { // the next session of the target removes it otherwise
		_, err := conn.Exec(ctx, b.names.sql(withdrawOffer), id)
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
