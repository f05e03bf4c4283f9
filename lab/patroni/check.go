//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/children"
)

// verdict is what a run has shown.
type verdict struct {
	Terms      int      `json:"terms"`
	Written    int      `json:"acknowledged_writes"`
	Lost       int      `json:"lost_writes"` // in asynchronous mode the servers may lose them
	Overlaps   []string `json:"excused_overlaps,omitempty"`
	Violations []string `json:"violations,omitempty"`
}

func (v *verdict) violation(format string, args ...any) {
	v.Violations = append(v.Violations, fmt.Sprintf(format, args...))
}

// check judges everything that the run recorded.
func (b *bed) check(ctx context.Context) (verdict, error) {
	var v verdict
	b.checkTerms(&v)
	b.checkOverlaps(&v, b.claims())
	err := b.checkLedger(ctx, &v)
	return v, err
}

func (b *bed) checkTerms(v *verdict) {
	terms := b.terms()
	v.Terms = len(terms)
	for i := 1; i < len(terms); i++ {
		if last, next := terms[i-1], terms[i]; next.number <= last.number {
			v.violation("term %d of %s began at %s, after term %d of %s", next.number, next.node, next.at.Format(time.StampMilli), last.number, last.node)
		}
	}
}

// claim is when a node said that it leads.
type claim struct {
	node  string
	leads []children.Interval
}

func (b *bed) claims() []claim {
	var all []claim
	for _, n := range b.everyone() {
		all = append(all, claim{n.Name, n.Leads()})
	}
	return all
}

// bothTrustSince is the longest time in which two nodes both trusted their terms.
func (b *bed) bothTrustSince(since time.Time) (longest time.Duration) {
	claims := b.claims()
	for i, one := range claims {
		for _, other := range claims[i+1:] {
			for _, both := range children.Overlaps(one.leads, other.leads) {
				if both.From.After(since) {
					longest = max(longest, both.Length())
				}
			}
		}
	}
	return longest
}

// checkOverlaps looks for two nodes that both trusted their terms. That is
// documented for asynchronous replication with two servers that take writes, for
// as long as both do and a lease longer, unless FailoverWait covers that.
func (b *bed) checkOverlaps(v *verdict, claims []claim) {
	for i, one := range claims {
		for _, other := range claims[i+1:] {
			for _, both := range children.Overlaps(one.leads, other.leads) {
				text := fmt.Sprintf("%s and %s both trusted their terms for %v from %s", one.node, other.node, both.Length(), both.From.Format(time.StampMilli))
				if b.excused(both) {
					v.Overlaps = append(v.Overlaps, text)
				} else {
					v.violation("%s", text)
				}
			}
		}
	}
}

func (b *bed) excused(both children.Interval) bool {
	if b.synchronous {
		return false
	}
	const imprecision = time.Second // of the probes
	for _, split := range b.splits() {
		around := children.Interval{From: split.From.Add(-imprecision), To: split.To.Add(b.lease + imprecision)}
		if b.failoverWait < split.Length()+b.lease && around.From.Before(both.From) && both.To.Before(around.To) {
			return true
		}
	}
	return false
}

// checkLedger looks for acknowledged writes that are missing, and for writes of an
// old term after one of a newer term.
func (b *bed) checkLedger(ctx context.Context, v *verdict) error {
	conn, err := pgx.Connect(ctx, b.hosts(b.servers...))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, "SELECT position, term, sequence FROM ledger ORDER BY position")
	if err != nil {
		return err
	}
	defer rows.Close()
	there := map[entry]bool{}
	var newest int64
	for rows.Next() {
		var position int64
		var e entry
		if err := rows.Scan(&position, &e.term, &e.sequence); err != nil {
			return err
		}
		if e.term < newest {
			v.violation("write %d of term %d committed after a write of term %d", e.sequence, e.term, newest)
		}
		newest = max(newest, e.term)
		there[e] = true
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, n := range b.everyone() {
		n.mu.Lock()
		for _, e := range n.written {
			v.Written++
			if there[e] {
				continue
			}
			v.Lost++
			if b.synchronous {
				v.violation("the acknowledged write %d of term %d is gone", e.sequence, e.term)
			}
		}
		n.mu.Unlock()
	}
	return nil
}

// checkCampaigns kills one leader after another: each node must lead in its turn.
func (b *bed) checkCampaigns(ctx context.Context) error {
	for left := len(b.nodes); left > 1; left-- {
		leader, err := b.awaitLeader(ctx, time.Time{})
		if err != nil {
			return err
		}
		killed := time.Now()
		leader.Kill()
		if _, err := b.awaitLeader(ctx, killed); err != nil {
			return fmt.Errorf("after the kill of a leader: %w: not all nodes take part", err)
		}
	}
	return nil
}

// awaitLeader waits until a node says that it leads a term that began after a
// moment. Nodes report the beginning of a term before they say that they lead.
func (b *bed) awaitLeader(ctx context.Context, since time.Time) (*node, error) {
	var leader *node
	err := children.Until(ctx, b.lease+slack, 10*time.Millisecond, func() error {
		_, began := b.termAfter(since)
		if leader, _ = b.leader(); !began || leader == nil {
			return errors.New("no node leads")
		}
		return nil
	})
	return leader, err
}
