package records

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres/internal/link"
)

// The kinds of the row of an offer and of its answers. An answer has the id of the offer
// in its column term, and the nil UUID in its column node_id: it is for the requester to
// remove.
const (
	KindOffer     = "offer"
	AnswerAccept  = "accept"
	AnswerDecline = "decline"
)

const (
	// offerTimeout bounds the wait for the answer of a target. An awake target answers in
	// milliseconds; after a lost notification it answers with its next heartbeat.
	offerTimeout = 4 * time.Second

	minOfferPoll, maxOfferPoll = time.Millisecond, 20 * time.Millisecond
)

const (
	// Inserts each offer whose target is live and active and whose role has a leader.
	// Each role is in the arguments once. If a requester gave up, the answer stays: an
	// offer more than a minute later removes it.
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
    SELECT pg_notify($4, '` + link.RolesOnly + `') WHERE EXISTS (SELECT FROM offer)
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

// offerRole asks the target of a hand-over whether it campaigns for the role, and returns
// an error if it does not or sends no answer in time.
func (rs *Records) offerRole(ctx context.Context, request tenure.Request) error {
	waiting, giveUp := context.WithCancel(ctx)
	defer giveUp()
	p := &pendingOffer{request: request, ended: waiting.Done(), sent: make(chan struct{}), done: make(chan struct{})}
	rs.offers.add(rs, p)
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
	rs.withdraw(ctx, p.id.Load())
	if ctx.Err() != nil {
		return fmt.Errorf("request: %w: %w", tenure.ErrConnection, context.Cause(ctx))
	}
	return fmt.Errorf("%w: %s did not answer within %v whether it campaigns for %q: %w",
		tenure.ErrNotActive, request.Target, offerTimeout, request.Role, context.DeadlineExceeded)
}

// withdraw removes an offer without an answer: the target need not answer it.
func (rs *Records) withdraw(ctx context.Context, id int64) {
	if id == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = rs.Reader.Ask(ctx, "request", func(ctx context.Context, conn *pgx.Conn) error { // the next session of the target removes it otherwise
		_, err := conn.Exec(ctx, rs.Names.SQL(withdrawOffer), id)
		return err
	})
}

// offerQueue sends the offers of concurrent hand-overs together, and polls for their
// answers together: a member hands hundreds of roles over at a time, and the connection of
// the reader serves one call at a time.
type offerQueue struct {
	mu      sync.Mutex
	pending []*pendingOffer // not sent yet; guarded by mu
	running bool            // guarded by mu
}

// pendingOffer is an offer with a waiting requester.
type pendingOffer struct {
	request tenure.Request
	ended   <-chan struct{} // closed when the requester has given up
	id      atomic.Int64    // of its row; 0 until it is sent
	sent    chan struct{}   // closed then
	done    chan struct{}   // closed with the result
	err     error
}

func (p *pendingOffer) finish(err error) {
	p.err = err
	close(p.done)
}

func (p *pendingOffer) isEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

func (q *offerQueue) add(rs *Records, p *pendingOffer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending = append(q.pending, p)
	if !q.running {
		q.running = true
		rs.Running.Go(func() { q.run(rs) }) // exits when no requester waits
	}
}

// next returns the offers to send now, at most one for each role, and whether the queue
// still has work.
func (q *offerQueue) next(waiting int) (sent []*pendingOffer, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	roles := map[string]bool{}
	var later []*pendingOffer
	for _, p := range q.pending {
		switch role := p.request.Role; {
		case p.isEnded():
		case roles[role]:
			later = append(later, p)
		default:
			roles[role] = true
			sent = append(sent, p)
		}
	}
	q.pending = later
	q.running = waiting+len(sent)+len(later) > 0
	return sent, q.running
}

// run sends offers and takes their answers until no requester waits.
func (q *offerQueue) run(rs *Records) {
	waiting := map[int64]*pendingOffer{} // by id
	for pause := minOfferPoll; ; pause = min(2*pause, maxOfferPoll) {
		for id, p := range waiting {
			if p.isEnded() {
				delete(waiting, id)
			}
		}
		sent, more := q.next(len(waiting))
		if !more {
			return
		}
		if len(sent) > 0 {
			pause = minOfferPoll
			if err := rs.sendOffers(sent, waiting); err != nil {
				for _, p := range sent {
					p.finish(err)
				}
			}
		}
		time.Sleep(pause)
		if err := rs.takeAnswers(waiting); err != nil {
			for _, p := range waiting {
				p.finish(err)
			}
			clear(waiting)
		}
	}
}

// sendOffers records offers in one statement and adds them to waiting if they await an
// answer.
func (rs *Records) sendOffers(sent []*pendingOffer, waiting map[int64]*pendingOffer) error {
	ctx, cancel := context.WithTimeout(context.Background(), offerTimeout)
	defer cancel()
	var roles, targets, requesters []string
	byRole := map[string]*pendingOffer{}
	for _, p := range sent {
		roles, targets, requesters = append(roles, p.request.Role), append(targets, p.request.Target.String()), append(requesters, p.request.By)
		byRole[p.request.Role] = p
	}
	type result struct {
		role   string
		status tenure.NodeStatus
		id     int64
	}
	var results []result
	err := rs.Reader.Ask(ctx, "request", func(ctx context.Context, conn *pgx.Conn) error {
		rows, _ := conn.Query(ctx, rs.Names.SQL(insertOffers), roles, targets, requesters, rs.Names.ElectionsChannel()) // its error is that of the rows
		var err error
		results, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r result, err error) { return r, row.Scan(&r.role, &r.status, &r.id) })
		return err
	})
	if err != nil {
		return err
	}
	for _, r := range results {
		switch p := byRole[r.role]; {
		case r.status == "":
			p.finish(fmt.Errorf("request: %w", tenure.ErrUnknownNode))
		case r.status != tenure.StatusActive:
			p.finish(fmt.Errorf("request: %w: %s is %s", tenure.ErrNotActive, p.request.Target, r.status))
		case r.id == 0:
			p.finish(fmt.Errorf("request: %w", tenure.ErrNoLeader))
		default:
			p.id.Store(r.id)
			close(p.sent)
			waiting[r.id] = p
		}
	}
	return nil
}

// takeAnswers finishes the answered offers.
func (rs *Records) takeAnswers(waiting map[int64]*pendingOffer) error {
	if len(waiting) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), offerTimeout)
	defer cancel()
	ids := make([]int64, 0, len(waiting))
	for id := range waiting {
		ids = append(ids, id)
	}
	answers := map[int64]string{}
	err := rs.Reader.Ask(ctx, "request", func(ctx context.Context, conn *pgx.Conn) error {
		rows, _ := conn.Query(ctx, rs.Names.SQL(takeAnswers), ids) // its error is that of the rows
		var (
			id   int64
			kind string
		)
		_, err := pgx.ForEachRow(rows, []any{&id, &kind}, func() error {
			answers[id] = kind
			return nil
		})
		return err
	})
	for id, kind := range answers {
		p := waiting[id]
		delete(waiting, id)
		if kind == AnswerAccept {
			p.finish(nil)
			continue
		}
		p.finish(fmt.Errorf("%w: %s does not campaign for %q", tenure.ErrNotActive, p.request.Target, p.request.Role))
	}
	return err
}
