package alerts

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/reach"
	"github.com/exactly-one/tenure/metrics"
	"github.com/exactly-one/tenure/server/internal/series"
)

// termWork is the work of one term.
type termWork struct {
	engine *Engine
	tables
	term      *tenure.Term
	node      string // its name
	log       *slog.Logger
	evaluator *evaluator

	// Of the rounds.
	position   metrics.Position
	present    map[alertKey]alert // nil if the database has to be asked
	failing    bool
	reach      reach.Watch
	crowded    bool               // there were too many series in the last round
	unreadable map[uuid.UUID]bool // nodes whose samples cannot be read

	mu           sync.Mutex
	outboxFilled chan struct{} // closed when there is something to send
}

// attempt does a round. A failed round changes nothing, and the next one does its work.
// The cause is logged once, for as long as it lasts. The error says why another node
// should lead.
func (l *termWork) attempt(term context.Context) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(term, roundTimeout)
	defer cancel()
	err := l.round(ctx)
	switch {
	case err != nil && term.Err() != nil:
		return nil
	case err != nil && !l.failing:
		l.log.Warn("alerts could not be evaluated", "error", err, "again_every", l.engine.config.Interval)
	case err == nil && l.failing:
		l.log.Info("alerts are evaluated again")
	}
	if l.failing = err != nil; l.failing {
		return l.reach.Failed(term, began)
	}
	l.reach.Worked()
	return nil
}

// round reads new samples, evaluates all rules and writes the changes. After a failure to
// read, it does not evaluate either: missing data must not look like a fault.
func (l *termWork) round(ctx context.Context) error {
	if l.present == nil {
		present, err := l.settledAlerts(ctx)
		if err != nil {
			return err
		}
		l.present = present
	}
	next, err := metrics.ReadSamples(ctx, l.backend, l.database, l.position, l.take)
	if err != nil {
		return err
	}
	l.position = next
	now, stored, err := l.readRules(ctx)
	if err != nil {
		return err
	}
	if err := l.engine.clock.tick(now, time.Now(), l.engine.config.Interval); err != nil {
		l.position = ""
		l.engine.store.Clear()
		return err
	}
	roles, nodes, err := l.readKnown(ctx)
	if err != nil {
		return err
	}
	by, err := l.readAttention(ctx)
	if err != nil {
		return err
	}
	rules := make([]Rule, len(stored))
	for i, s := range stored {
		rules[i] = s.Rule
		roles = append(roles, rolesIn(s.Condition)...)
	}
	l.engine.knowRoles(rules)
	left := l.engine.store.Complete(now, roles, nodes)
	l.reportCrowded(left)
	began := time.Now()
	outcomes := l.evaluator.evaluate(ctx, now, rules)
	took := time.Since(began)
	if err := ctx.Err(); err != nil {
		return err // it would look like an error of the rules
	}
	c := step(now, l.present, outcomes, l.complete(now, nodes, left), by)
	l.relate(ctx, now, rules, &c)
	if err := l.commit(ctx, c); err != nil {
		return err
	}
	l.engine.show(true, l.present, took)
	return l.writeErrors(ctx, stored, outcomes)
}

// reportCrowded logs that series are left out, and when all are read again.
func (l *termWork) reportCrowded(left int) {
	switch {
	case left > 0 && !l.crowded:
		l.log.Warn("there are too many series; some are left out", "left_out", left, "kept", l.engine.store.Len())
	case left == 0 && l.crowded:
		l.log.Info("all series are kept again", "kept", l.engine.store.Len())
	}
	l.crowded = left > 0
}

// settleRounds is how many rounds a leader waits for the samples of nodes. A new leader
// waits, since after a crash of the server no samples are left. So does a leader after
// failed rounds, since the nodes could not write any then.
const settleRounds = 3.5

// complete reports whether samples of all nodes have come, or would have come if
// the nodes wrote any. Until then no alert begins to fire and none ends: missing
// samples may still arrive.
func (l *termWork) complete(now time.Time, nodes []series.Node, left int) bool {
	waited := now.Sub(l.engine.clock.steady)
	return waited > time.Duration(settleRounds*float64(l.engine.config.Interval)) || left == 0 && l.engine.store.AllReport(nodes)
}

// take takes a sample of a node.
func (l *termWork) take(snapshot metrics.Snapshot) error {
	switch {
	case snapshot.Problem == nil && !l.engine.clock.isToCome(snapshot.At, time.Now()):
		l.engine.store.Append(snapshot)
	case snapshot.Problem != nil && !l.unreadable[snapshot.Node]:
		l.unreadable[snapshot.Node] = true
		l.log.Warn("samples of a node cannot be read", "node", snapshot.NodeName, "error", snapshot.Problem)
	}
	return nil
}

// commit writes a change. After an error it may have happened nevertheless, and the next
// round looks.
func (l *termWork) commit(ctx context.Context, c change) error {
	if c.empty() {
		return nil
	}
	if err := l.write(ctx, l.term, c); err != nil {
		l.present = nil
		return err
	}
	l.present = apply(l.present, c)
	l.logChange(c)
	if len(c.notify) > 0 {
		l.wakeSenders()
	}
	return nil
}

// mostLogged is how many changes of a round are logged one by one.
const mostLogged = 100

func (l *termWork) logChange(c change) {
	for _, a := range c.written[:min(len(c.written), mostLogged)] {
		l.log.Info("alert", "alert", a.Rule, "state", a.State, "labels", a.Labels)
	}
	for _, key := range c.removed[:min(len(c.removed), mostLogged)] {
		l.log.Info("alert", "alert", key.rule, "state", Inactive)
	}
	if more := max(0, len(c.written)-mostLogged) + max(0, len(c.removed)-mostLogged); more > 0 {
		l.log.Info("more alerts changed", "count", more)
	}
}

// wakeSenders wakes every waiting sender.
func (l *termWork) wakeSenders() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.outboxFilled)
	l.outboxFilled = make(chan struct{})
}

// awaitOutbox returns a channel. It is closed when there is something new to send.
func (l *termWork) awaitOutbox() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.outboxFilled
}
