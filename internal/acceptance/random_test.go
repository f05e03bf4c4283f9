package acceptance_test

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/pgtest"
)

var seed = flag.Uint64("acceptance-seed", 0, "seed of the random faults; 0 for another each time")

// Three nodes over many rounds, each with one fault to one of them, mostly to
// the leader. The checker of the cluster watches all the time, and afterwards the
// history has to agree with one who looked at the lock.
func TestRandomFaultsLeaveAtMostOneLeader(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	rounds := scaled("TENURE_TEST_RANDOM_ROUNDS", 100)
	chosen := *seed
	if chosen == 0 {
		chosen = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with -acceptance-seed=%d", chosen)
	random := rand.New(rand.NewPCG(chosen, 0))

	c := newCluster(t)
	c.config.Lease, c.config.CheckInterval = lease/2, checkInterval/2
	server := pgtest.Shared(t)
	admin := pgtest.Conn(t, c.dsn)
	var members []*member
	for _, name := range []string{"random1", "random2", "random3"} {
		members = append(members, c.joinWired(name, address(server)))
	}
	seen := c.observe()
	// If the server hears of the end of a session first, the next leader can
	// begin before the last has heard of it; here the node hears first.
	lose := func(term *tenure.Term, m *member, end func(*faultwire.Conn, ...faultwire.Direction)) {
		session := m.session()
		end(session, faultwire.ToClient)
		if term != nil {
			ended(t, term)
		}
		end(session, faultwire.ToServer)
	}
	faults := []struct {
		name   string
		weight int
		strike func(*member, *tenure.Term) // the victim's term, or nil
	}{
		{"cut the session", 4, func(m *member, term *tenure.Term) { lose(term, m, (*faultwire.Conn).Cut) }},
		{"close the session", 4, func(m *member, term *tenure.Term) { lose(term, m, (*faultwire.Conn).CloseGracefully) }},
		{"cut the watch", 2, func(m *member, _ *tenure.Term) { m.watch().Cut() }},
		{"cut both", 3, func(m *member, term *tenure.Term) { m.watch().Cut(); lose(term, m, (*faultwire.Conn).Cut) }},
		{"terminate the session", 4, func(m *member, term *tenure.Term) {
			measured := c.checks.tolerate()
			execute(t, admin, terminate, m.Name())
			if term != nil {
				ended(t, term)
			}
			if overlap := measured(); overlap > slack/4 {
				t.Errorf("Invariant 1: two nodes trusted their terms for %v after the server had ended a session", overlap)
			}
		}},
		{"step down", 6, func(m *member, _ *tenure.Term) {
			_ = m.election.StepDown(t.Context()) // it may have stopped leading
		}},
		{"hand over", 4, func(m *member, _ *tenure.Term) {
			target := members[random.IntN(len(members))]
			_ = m.election.HandOver(t.Context(), target.ID()) // it may have stopped leading
		}},
		{"stall", 2, func(m *member, term *tenure.Term) {
			m.wire.Stall()
			if term != nil {
				ended(t, term)
			}
			m.wire.Resume()
		}},
		{"stall for a moment", 3, func(m *member, _ *tenure.Term) {
			m.wire.Stall()
			<-time.After(c.config.Lease / 4)
			m.wire.Resume()
		}},
	}
	weights := 0
	for _, f := range faults {
		weights += f.weight
	}
	for range rounds {
		victim, term := c.someoneElse(0, members...)
		if random.IntN(4) == 0 {
			victim = members[random.IntN(len(members))]
			term = victim.election.Term()
		}
		pick := random.IntN(weights)
		for _, f := range faults {
			if pick -= f.weight; pick < 0 {
				t.Logf("%s of %s", f.name, victim.Name())
				f.strike(victim, term)
				break
			}
		}
	}
	c.someoneElse(0, members...)

	if falls := value[int](t, admin, `
		SELECT count(*)
		FROM (
			SELECT acquired_at < lag(ended_at) OVER (ORDER BY term) AS early
			FROM `+c.quoted("history")+` WHERE role = $1
		) h
		WHERE early`, role); falls != 0 {
		t.Errorf("%d terms of the history began before the last one had ended", falls)
	}
	c.agree(seen)
	t.Logf("%d terms in %d rounds", len(c.checks.terms()), rounds) // their order was checked when they were seen
}
