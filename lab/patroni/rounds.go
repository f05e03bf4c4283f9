//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/exactly-one/tenure/internal/children"
)

// round is one fault and what followed from it. Times are in milliseconds.
type round struct {
	Mode   string    `json:"mode"`
	Kind   string    `json:"kind"`
	Number int       `json:"number"`
	At     time.Time `json:"at"`
	From   string    `json:"from"` // the primary before
	To     string    `json:"to"`   // the primary after
	Kept   bool      `json:"leader_kept"`

	Vacancy      float64 `json:"vacancy_ms"`              // from the end of the last term to the next one
	Writable     float64 `json:"writable_ms"`             // from the fault to the first write that a server acknowledged
	FirstSession float64 `json:"writable_to_session_ms"`  // from that to the first session of a node
	AllSessions  float64 `json:"writable_to_all_ms"`      // ... of the last node
	Leader       float64 `json:"writable_to_leader_ms"`   // ... to the next term
	AfterReunion float64 `json:"all_to_leader_ms"`        // from the session of the last node, or the end of a killed one's trust, to the next term; 0 if that did not wait for all nodes
	Split        float64 `json:"two_primaries_ms"`        // how long two servers both acknowledged writes
	BothTrust    float64 `json:"both_trust_ms,omitempty"` // how long two nodes both trusted their terms

	Remade    bool   `json:"standbys_remade,omitempty"` // Patroni could not bring the old primary back
	Violation string `json:"violation,omitempty"`
}

// The most that a node needs to be back: its pause between two attempts is 2 s
// at most, and an attempt at a host that does not answer takes connect_timeout, 2 s.
const (
	reconnect = 2*time.Second + (members-1)*2*time.Second
	slack     = 2 * time.Second // of a loaded machine
)

// reunionBound is how soon after the last node is back the next term must begin, after a
// restart and, in synchronous mode, after a failover.
const reunionBound = 500 * time.Millisecond

func ms(d time.Duration) float64 {
	return float64(d.Round(100*time.Microsecond)) / float64(time.Millisecond)
}

// chaos runs faults of the kinds in a random order, each as often as the others.
func (b *bed) chaos(ctx context.Context, chosen []kind, count int, random *rand.Rand, each func(round)) error {
	var order []kind
	for len(order) < count {
		for _, i := range random.Perm(len(chosen)) {
			order = append(order, chosen[i])
		}
	}
	for i, k := range order[:count] {
		r, err := b.round(ctx, k)
		if err != nil {
			return fmt.Errorf("round %d, %s: %w", i+1, k.name, err)
		}
		r.Number = i + 1
		each(r)
	}
	return nil
}

func (b *bed) round(ctx context.Context, k kind) (round, error) {
	r := round{Mode: b.mode.name, Kind: k.name}
	if err := b.awaitCluster(ctx, 90*time.Second); err != nil {
		return r, err
	}
	if err := b.await(ctx, 60*time.Second, "the nodes do not all take part again", b.settled); err != nil {
		return r, err
	}
	primary, standby, err := b.primary(ctx)
	if err != nil {
		return r, err
	}
	leader, number := b.leader()
	if leader == nil {
		return r, errors.New("no node leads although nothing happens")
	}
	b.faultAt, r.From = time.Now(), primary.name
	heal, err := k.inject(ctx, b, primary, standby)
	if err != nil {
		return r, err
	}
	r.At = b.faultAt
	held := b.holdFault(ctx, k, r.At)
	// Whatever happened: what was stopped or cut must come back.
	if err := errors.Join(held, heal(context.WithoutCancel(ctx))); err != nil {
		return r, err
	}
	if err := b.recover(ctx, &r); err != nil {
		return r, err
	}
	r, err = b.measure(ctx, r, leader, number)
	if err == nil && k.judge != nil {
		k.judge(b, &r)
	}
	b.closeAddedNodes()
	return r, err
}

// holdFault waits for as long as the fault lasts.
func (b *bed) holdFault(ctx context.Context, k kind, since time.Time) error {
	select {
	case <-time.After(b.longer(k.hold)):
	case <-ctx.Done():
		return ctx.Err()
	}
	if k.lasts == nil {
		return nil
	}
	return k.lasts(ctx, b, since)
}

// longer returns how long a fault of a planned duration lasts.
func (b *bed) longer(planned time.Duration) time.Duration {
	if planned == 0 {
		return 0
	}
	return max(planned, b.hold)
}

// recover waits until the servers are well, and a node leads.
func (b *bed) recover(ctx context.Context, r *round) error {
	// Patroni notices a kill at its next turn; until then the servers look well.
	select {
	case <-time.After((loopWait + 1) * time.Second):
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := b.awaitCluster(ctx, 60*time.Second); err != nil {
		if ctx.Err() != nil {
			return err
		}
		r.Remade = true
		if err := b.remakeStandbys(ctx); err != nil {
			return err
		}
	}
	limit := max(b.lease, b.failoverWait) + reconnect + slack
	return b.await(ctx, limit, fmt.Sprintf("the nodes do not all take part again, or none leads, %v after the fault and with the servers well,", time.Since(r.At).Round(time.Second)), b.settled)
}

// remakeStandbys copies the primary anew for standbys that Patroni cannot bring
// back.
func (b *bed) remakeStandbys(ctx context.Context) error {
	primary, _, err := b.primary(ctx)
	if err != nil {
		return err
	}
	for _, s := range b.servers {
		if s != primary {
			// One that streams refuses, which is as well.
			_ = s.post(ctx, b, "/reinitialize", map[string]bool{"force": true})
		}
	}
	return b.awaitCluster(ctx, 90*time.Second)
}

// measure fills in what followed from the fault.
func (b *bed) measure(ctx context.Context, r round, leader *node, number int64) (round, error) {
	primary, _, err := b.primary(ctx)
	if err != nil {
		return r, err
	}
	r.To = primary.name
	b.measureFrom(&r, leader, number)
	return r, nil
}

// measureFrom fills in what followed from the fault, once the primary after it is known.
func (b *bed) measureFrom(r *round, leader *node, number int64) {
	writable, wrote := b.writableAfter(*r)
	if wrote {
		r.Writable = ms(writable.Sub(r.At))
	}
	for _, split := range b.splits() {
		if split.To.After(r.At) {
			r.Split = max(r.Split, ms(split.Length()))
		}
	}
	r.BothTrust = ms(b.bothTrustSince(r.At))
	next, began := b.termAfter(r.At)
	if _, now := b.leader(); now == number || !began {
		r.Kept = true
		return
	}
	last := r.At
	for _, lead := range leader.Leads() {
		if lead.From.Before(r.At) {
			last = lead.To
		}
	}
	r.Vacancy = ms(next.at.Sub(last))
	if back, all := b.reunionBefore(next.at, r.At); all {
		r.AfterReunion = ms(next.at.Sub(back))
	}
	if !wrote {
		return
	}
	r.Leader = ms(next.at.Sub(writable))
	first, all, err := b.sessionsAfter(r.At)
	if err != nil {
		return // some kept their sessions
	}
	r.FirstSession, r.AllSessions = ms(first.Sub(writable)), ms(all.Sub(writable))
	b.judgeWait(r, next.at, writable, first)
}

// judgeWait records where the wait after a server change is longer than documented.
func (b *bed) judgeWait(r *round, next, writable, first time.Time) {
	var found []string
	if wait := max(b.lease, b.failoverWait); next.Sub(children.Later(writable, first)) > wait+slack {
		found = append(found, fmt.Sprintf("the next term began %v after the first session on the new primary; the documented wait is %v", next.Sub(first), wait))
	}
	if late := first.Sub(writable); late > reconnect+slack {
		found = append(found, fmt.Sprintf("the first node was back %v after the new primary took writes; documented are %v", late, reconnect))
	}
	if b.endsAtReunion(*r) && r.AfterReunion > ms(reunionBound) {
		found = append(found, fmt.Sprintf("the next term began %.0f ms after the session of the last node; the bound is %v", r.AfterReunion, reunionBound))
	}
	r.Violation = strings.Join(found, "; ")
}

// endsAtReunion reports whether the wait after a round's fault ends when all nodes
// are back. A restart keeps the timeline. After any other fault, Patroni promotes,
// and only in synchronous mode do the nodes know that the registry is complete.
func (b *bed) endsAtReunion(r round) bool {
	return r.From == r.To && r.Kind == "restart" || r.From != r.To && b.synchronous
}

// writableAfter is when a server first acknowledged a write after the fault: if
// the primary changed, another than the one before.
func (b *bed) writableAfter(r round) (at time.Time, found bool) {
	var old *server
	if r.From != r.To {
		old = b.named(r.From)
	}
	at = b.promotedAfter(old, r.At)
	return at, !at.IsZero()
}
