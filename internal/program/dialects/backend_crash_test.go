package dialects

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/sandbox"
	"github.com/exactly-one/tenure/internal/testkit"
)

// A standby takes over when the lease of the killed leader has expired: not earlier,
// because no node can know that the leader is dead, and not later.
func TestBackendKilledLeaderIsReplacedAfterItsLease(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		c := newCluster(t, k)
		leader := c.spawn(childStands, "leader")
		last := leader.await("leads")
		node := c.join("standby")
		standby := node.campaign(backendRole)
		c.awaitHeartbeat()
		leader.signal(syscall.SIGKILL)
		killed := time.Now()
		next := leads(t, standby)
		began := time.Now()
		t.Logf("replaced %v after it was killed, with a lease of %v", began.Sub(killed), c.config.Lease)
		if next.Number() <= last.Term {
			t.Errorf("Invariant 2: term %d came after term %d", next.Number(), last.Term)
		}
		if took := began.Sub(killed); took > c.config.Lease+slack {
			t.Errorf("the leader was replaced after %v; want one lease of %v", took, c.config.Lease)
		}
		leader.kill()
		for _, p := range leader.periods() {
			if p.Until > began.UnixNano() {
				t.Errorf("Invariant 1: a term began %v before the last one's trust would have ended",
					time.Duration(p.Until-began.UnixNano()))
			}
		}
		if vacant := next.PrecedingVacancy(); vacant < 0 || vacant > slack {
			t.Errorf("the vacancy was %v; want 0 to %v, because a vacancy begins when the lease expires", vacant, slack)
		}
		terms, err := node.backend.History(soon(t), history.Query{Latest: true})
		if err != nil || len(terms) != 1 || (terms[0].PrecedingSilence-terms[0].PrecedingVacancy-c.config.Lease).Abs() > time.Millisecond {
			t.Errorf("%+v, %v; want a silence of the vacancy of %v and the lease of %v", terms, err, next.PrecedingVacancy(), c.config.Lease)
		}
	})
}

// A leader that is paused for longer than its lease, in the middle of a fenced
// transaction, never leads after it resumes, and its writes do not commit.
func TestBackendPausedLeaderLosesItsTerm(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		c := newCluster(t, k)
		db := k.connect(t, c.source)
		execute(t, db, "CREATE TABLE ledger (term bigint)")
		leader := c.spawn(childWrites, "leader")
		last := leader.await("writing")
		standby := c.join("standby").campaign(backendRole)
		stopped := c.pause(leader)
		next := leads(t, standby)
		if took := time.Since(stopped); took > c.config.Lease+slack {
			t.Errorf("the leader was replaced after %v; want one lease of %v", took, c.config.Lease)
		}
		if next.Number() <= last.Term {
			t.Errorf("Invariant 2: term %d came after term %d", next.Number(), last.Term)
		}
		leader.resume()
		leader.signal(sandbox.ResumeSignal)
		if r := leader.await("committed"); r.Lead || !strings.Contains(r.Error, tenure.ErrFenced.Error()) {
			t.Errorf("after waking: leads %t, and the transaction ended with %q; want ErrFenced", r.Lead, r.Error)
		}
		if gap := leader.await("gap"); gap.Lead {
			t.Error("Invariant 1: the first check after the pause reports a leader")
		}
		if rows := value(t, db, "SELECT count(*) FROM ledger"); rows != "0" {
			t.Errorf("Invariant 3: %s rows of the old term were committed", rows)
		}
	})
}

// During random kills and pauses of three processes, no two treat a term as valid at the
// same time and term numbers increase. After the last fault one of them leads.
func TestBackendRandomKillsKeepInvariants(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	onKinds(t, direct, func(t *testing.T, k kind) {
		const (
			duration = 20 * time.Second
			least    = 5 // terms; chance may have it that the leader is seldom hit
		)
		c := newCluster(t, k)
		c.config.Lease = time.Second
		var all, living []*process
		spawn := func() {
			p := c.spawn(childStands, fmt.Sprintf("node-%d", len(all)))
			all, living = append(all, p), append(living, p)
		}
		for range 3 {
			spawn()
		}
		pause := func(d time.Duration) { <-time.After(d) }
		for begun := time.Now(); time.Since(begun) < duration || countTerms(all) < least; {
			if time.Since(begun) > duration+patience {
				t.Fatalf("there were only %d terms", countTerms(all))
			}
			pause(time.Duration(rand.IntN(1500)) * time.Millisecond)
			i := rand.IntN(len(living))
			if rand.IntN(3) > 0 { // mostly who led last
				i = slices.IndexFunc(living, func(p *process) bool { return p == lastLeader(all) })
				i = max(i, 0)
			}
			victim := living[i]
			if rand.IntN(2) == 0 {
				victim.kill()
				living = slices.Delete(living, i, i+1)
				spawn()
				continue
			}
			victim.signal(sandbox.PauseSignal)
			pause(time.Duration(rand.IntN(2500)) * time.Millisecond)
			victim.signal(sandbox.ResumeSignal)
		}
		leader := lastLeader(all)
		last := leader.highest()
		leader.kill()
		testkit.Await(t, "another one leads", func() bool { return lastLeader(all).highest() > last })
		var periods []period
		for _, p := range all {
			p.kill()
			for _, gap := range p.all("gap") {
				if gap.Lead {
					t.Logf("%s still led after a gap in its checks", p.name) // if the gap was shorter than its trust
				}
			}
			if p.record != "" && len(p.all("leads")) > 0 {
				periods = append(periods, p.periods()...)
			}
		}
		checkPeriods(t, periods)
		t.Logf("%d terms of %d processes", len(periods), len(all))
	})
}

func countTerms(all []*process) (terms int) {
	for _, p := range all {
		terms += len(p.all("leads"))
	}
	return terms
}

// lastLeader returns the process with the highest term so far.
func lastLeader(all []*process) *process {
	return slices.MaxFunc(all, func(a, b *process) int { return cmp.Compare(a.highest(), b.highest()) })
}

func (p *process) highest() (term int64) {
	for _, r := range p.all("leads") {
		term = max(term, r.Term)
	}
	return term
}

// checkPeriods checks invariants 1 and 2 for the periods of all nodes.
func checkPeriods(t *testing.T, periods []period) {
	t.Helper()
	slices.SortFunc(periods, func(a, b period) int { return cmp.Compare(a.Term, b.Term) })
	for i := 1; i < len(periods); i++ {
		last, next := periods[i-1], periods[i]
		if last.Term == next.Term {
			t.Errorf("Invariant 2: term %d began twice", next.Term)
		}
		if overlap := last.Until - next.From; overlap > 0 {
			t.Errorf("Invariant 1: term %d was trusted %v before the trust in term %d would have ended",
				next.Term, time.Duration(overlap), last.Term)
		}
	}
}
