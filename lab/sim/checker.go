package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/exactly-one/tenure"
)

// checker checks the invariants. It does not depend on how the engine or the server
// work: it records what they report, and compares. Its methods are called with
// World.mu held.
type checker struct {
	world   *World
	terms   map[string][]begun // by role, in order
	lasting map[string]int64   // the newest term of a role that the server remembers
	next    map[string]int64   // event to be applied, by role
	due     bool               // a check is scheduled
	failure *Violation
	off     bool // nothing is a violation

	// clocksStop switches invariant 1 off: the clocks of machines stand still.
	clocksStop bool
	// forwardUntil is one lease after the clock of the server was last set ahead. Until then
	// invariant 1 is switched off: to the server, leases have expired that nodes still trust.
	forwardUntil time.Duration
	// contextsOnly prevents asking nodes whether they lead: the call can make a node notice
	// that it does not. Then only the contexts of their work are checked.
	contextsOnly bool
}

// begun records that a term began on the server.
type begun struct {
	term    int64
	backend *backend
}

// settlesFor reports whether the term began after the lease of the one before it.
func (next begun) settlesFor(b begun) bool {
	return next.backend.timing.Settle >= b.backend.timing.Lease && next.backend.installed == b.backend.installed
}

// Violation is a broken invariant. It is an error.
type Violation struct {
	Invariant int // as the package numbers them; 0 for the contract of the backend interface
	At        time.Duration
	What      string
}

func (v *Violation) Error() string {
	if v.Invariant == 0 {
		return fmt.Sprintf("at %v: %s", v.At, v.What)
	}
	return fmt.Sprintf("at %v: invariant %d: %s", v.At, v.Invariant, v.What)
}

func newChecker(w *World) *checker {
	return &checker{world: w, terms: map[string][]begun{}, lasting: map[string]int64{}, next: map[string]int64{}}
}

// violate records the first violation.
func (c *checker) violate(invariant int, format string, args ...any) {
	if c.off || c.world.replay.violation() != nil {
		return
	}
	v := &Violation{Invariant: invariant, At: c.world.now(), What: fmt.Sprintf(format, args...)}
	c.world.log("checker", "VIOLATION %s", v.Error())
	if c.failure == nil {
		c.failure = v
		c.world.Transcript.freeze()
	}
}

func (w *World) violate(invariant int, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checker.violate(invariant, format, args...)
}

// Failure returns the first violation, or nil.
func (w *World) Failure() *Violation {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.checker.failure != nil {
		return w.checker.failure
	}
	return w.replay.violation()
}

// checkSoon schedules a check for when every process has done what is due at this
// instant: the fake time advances only then.
func (c *checker) checkSoon() {
	if c.due {
		return
	}
	c.due = true
	c.world.after(1, func() {
		c.due = false
		c.check()
	})
}

// check checks invariant 1: no two nodes trust a term of one role, and no work
// continues uncanceled under a term after its successor has begun.
func (c *checker) check() {
	if c.clocksStop || c.world.now() < c.forwardUntil {
		return
	}
	for _, role := range c.world.roleNames {
		working := c.working(role) // before any node is asked whether it leads
		trusting := working
		if !c.contextsOnly {
			trusting = c.leading(role)
		}
		if len(trusting) == 0 {
			continue
		}
		c.drained(role, trusting)
		newest := trusting[len(trusting)-1]
		for _, old := range trusting {
			if !c.contextsOnly && old.process != newest.process && !c.excused(role, old) {
				c.violate(1, "%s trusts term %d of %s, %s term %d",
					old.process, old.term, role, newest.process, newest.term)
			}
		}
		for _, old := range working {
			if c.began(role, old.term) < c.began(role, newest.term) && !old.process.paused() && !c.excused(role, old) {
				c.violate(1, "the work of %s under term %d of %s continues while %s leads in term %d",
					old.process, old.term, role, newest.process, newest.term)
			}
		}
	}
}

// claim is the leadership of a role that a process trusts.
type claim struct {
	process *Process
	term    int64
}

// leading returns the processes that report that they lead, in the order of their terms.
func (c *checker) leading(role string) []claim {
	var claims []claim
	for _, p := range c.world.alive() {
		if term := p.trusts(role); term > 0 {
			claims = append(claims, claim{p, term})
		}
	}
	return c.inOrder(role, claims)
}

// inOrder sorts claims by when their terms began. Numbers do not say it after the clock
// was set back and a row was lost.
func (c *checker) inOrder(role string, claims []claim) []claim {
	slices.SortFunc(claims, func(a, b claim) int { return cmp.Compare(c.began(role, a.term), c.began(role, b.term)) })
	return claims
}

// began is the place of a term among those of its role.
func (c *checker) began(role string, term int64) int {
	return slices.IndexFunc(c.terms[role], func(b begun) bool { return b.term == term })
}

// working returns the processes that work under a context that has not ended,
// in the order of their terms.
func (c *checker) working(role string) []claim {
	var claims []claim
	for _, p := range c.world.alive() {
		if work := p.work[role]; work != nil && work.ctx.Err() == nil {
			claims = append(claims, claim{p, work.term})
		}
	}
	return c.inOrder(role, claims)
}

// excused reports whether a claim outlives its session for the one reason that the
// design allows: an administrator ended a running leader's session on the server, the
// leader has not learned of it yet, and its successor did not settle for the leader's
// lease. The successor does not settle if its configuration says so, or if the schema
// was removed as well, so that no row is left to settle by.
func (c *checker) excused(role string, old claim) bool {
	for i, b := range c.terms[role] {
		if b.term != old.term || !b.backend.killed {
			continue
		}
		if later := c.terms[role][i+1:]; len(later) > 0 && later[0].settlesFor(b) {
			continue
		}
		informed := b.backend.client.cause != nil && !old.process.paused()
		return !informed && c.world.now()-b.backend.endedAt <= b.backend.timing.Lease
	}
	return false
}

// termBegan checks invariant 2: a new term is larger than all before it.
func (c *checker) termBegan(role string, term int64, b *backend) {
	terms := c.terms[role]
	if n := len(terms); n > 0 && term <= terms[n-1].term && !c.isForgottenUnderFalseClock(role, terms[n-1].term) {
		c.violate(2, "%s begins term %d of %s after term %d", b.client.process, term, role, terms[n-1].term)
	}
	c.begins(role, b)
	c.terms[role] = append(terms, begun{term, b})
	c.lasting[role] = term
	c.checkSoon()
}

// isForgottenUnderFalseClock reports whether a server that forgot a term has had its clock
// set back: only the clock makes the number of the next term larger than that of a term
// that no row has.
func (c *checker) isForgottenUnderFalseClock(role string, term int64) bool {
	return c.world.server.steppedAt > 0 && c.lasting[role] < term
}

// promoted records that another server takes over with the tables that it had
// received. Terms that it has not received, and what was committed under them, are
// lost.
func (c *checker) promoted(tables snapshot) {
	clear(c.lasting)
	for role, row := range tables.roles {
		c.lasting[role] = row.term
	}
	clear(c.next)
	maps.Copy(c.next, tables.cursors)
}

// forgotten records that a crash undid the last changes of roles. What was committed
// under the terms that it undid is older, or undone, too.
func (c *checker) forgotten(roles map[string]*roleRow) {
	for role, row := range roles {
		c.lasting[role] = row.term
	}
}

// count returns how many terms have begun.
func (c *checker) count() int {
	count := 0
	for _, terms := range c.terms {
		count += len(terms)
	}
	return count
}

// committed checks invariant 3: no transaction of a term commits after the next
// has begun.
func (c *checker) committed(t *transaction) {
	if last := c.lasting[t.role]; last > t.term {
		c.violate(3, "a transaction of %s under term %d of %s commits after term %d began", t.process, t.term, t.role, last)
	}
}

// applied checks invariant 12.
func (c *checker) applied(t *transaction) {
	if next := c.next[t.role]; t.batch.from != next {
		c.violate(appliedOnce, "a transaction of %s under term %d of %s applies the events from %d on, and the next is %d",
			t.process, t.term, t.role, t.batch.from, next)
	}
	c.next[t.role] = t.batch.to
}

// nestedCalls checks invariant 5: a session never holds a lock twice.
func (c *checker) nestedCalls(b *backend, depth int) {
	c.violate(5, "session %d of %s holds a lock %d times", b.incarnation, b.client.process, depth)
}

// acquiredTwice checks what the backend interface demands of the engine for
// invariant 5.
func (c *checker) acquiredTwice(s *session, role string) {
	c.violate(5, "%s asks for %s, which its session %d leads", s.process, role, s.Incarnation())
}

// releasing checks invariant 4: the work has returned before its lock is
// released.
func (c *checker) releasing(s *session, releases []tenure.ReleaseRequest) {
	for _, r := range releases {
		work := s.process.work[r.Role.Name()]
		if s.process.crashed || r.Term == 0 || work == nil || work.term != r.Term {
			continue
		}
		c.violate(4, "%s releases %s while its work under term %d runs (context: %v)",
			s.process, r.Role, r.Term, work.ctx.Err())
	}
}

// aborted checks invariants 4 and 1 where a connection is closed, which frees
// every lock: no work runs uncanceled and no term is trusted.
func (c *checker) aborted(s *session) {
	if s.process.crashed || s.cause != nil || s.backend == nil {
		return // the locks are gone anyway, or there were none
	}
	for name, held := range s.roles {
		if held.term == 0 {
			continue
		}
		if work := s.process.work[name]; work != nil && work.term == held.term && work.ctx.Err() == nil {
			c.violate(4, "%s closes its session while its work under term %d of %s runs", s.process, held.term, name)
		}
		if s.process.trusts(name) == held.term {
			c.violate(1, "%s closes its session while it trusts term %d of %s", s.process, held.term, name)
		}
	}
}

// closing checks that a session is closed gracefully only with no term held.
func (c *checker) closing(s *session) {
	for name, held := range s.roles {
		if held.term > 0 && !s.process.crashed {
			c.violate(0, "%s leaves while it holds term %d of %s", s.process, held.term, name)
		}
	}
}
