package postgres

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
)

// offerQueue sends the offers of concurrent hand-overs together, and polls for their
// answers together: a member hands hundreds of roles over at a time, and the connection of
// the reader serves one call at a time.
type offerQueue struct {
	mu      sync.Mutex
	pending []*pendingOffer // not sent yet; guarded by mu
	running bool            // guarded by mu
}

// pendingOffer is an offer that its requester waits for.
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

func (q *offerQueue) add(b *Backend, p *pendingOffer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending = append(q.pending, p)
	if !q.running {
		q.running = true
		b.running.Go(func() { q.run(b) }) // exits when no requester waits
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
func (q *offerQueue) run(b *Backend) {
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
			if err := b.sendOffers(sent, waiting); err != nil {
				for _, p := range sent {
					p.finish(err)
				}
			}
		}
		time.Sleep(pause)
		if err := b.takeAnswers(waiting); err != nil {
			for _, p := range waiting {
				p.finish(err)
			}
			clear(waiting)
		}
	}
}

// sendOffers records offers in one statement and adds those that await an answer.
func (b *Backend) sendOffers(sent []*pendingOffer, waiting map[int64]*pendingOffer) error {
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
	err := b.reader.Ask(ctx, "request", func(ctx context.Context, conn *pgx.Conn) error {
		rows, _ := conn.Query(ctx, b.names.SQL(insertOffers), roles, targets, requesters, b.names.ElectionsChannel()) // its error is that of the rows
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

// takeAnswers finishes the offers that were answered.
func (b *Backend) takeAnswers(waiting map[int64]*pendingOffer) error {
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
	err := b.reader.Ask(ctx, "request", func(ctx context.Context, conn *pgx.Conn) error {
		rows, _ := conn.Query(ctx, b.names.SQL(takeAnswers), ids) // its error is that of the rows
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
		if kind == answerAccept {
			p.finish(nil)
			continue
		}
		p.finish(fmt.Errorf("%w: %s does not campaign for %q", tenure.ErrNotActive, p.request.Target, p.request.Role))
	}
	return err
}
