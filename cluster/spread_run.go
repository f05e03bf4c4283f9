package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
)

// spreadRun is one run of a spread. Its loop chooses the roles to campaign for and the
// roles to hand over.
type spreadRun struct {
	*Spread
	work       tenure.Work
	assumption assumption
	ctx        context.Context // ends all goroutines of the run
	cancel     context.CancelFunc
	group      sync.WaitGroup

	// Guarded by Spread.mu.
	cooldowns        map[string]cooldown
	offered          map[string]time.Duration // roles that are about to be handed over to this member, or are not taken back: the check intervals to keep them
	givenUp          map[string]bool          // roles that this member was asked to give up
	unplannedMove    bool                     // a role moved to another node without a plan
	transferring     bool                     // a handover of roles is in progress
	campaignsWaiting bool                     // campaigns wait until earlier roles have been taken over
	planVersion      int                      // counts the plans
	nextApply        time.Duration            // when to apply the plan again without a change
}

// candidacy is this member's campaign for a role, or its leadership.
type candidacy struct {
	name     string
	election *tenure.Election
	stop     context.CancelFunc // ends the campaign, or the term

	// Guarded by Spread.mu.
	handingOver bool // a handover is in progress
	asksTarget  bool // the target of the handover is asked first; not changed while handingOver
}

// cooldown is how long this member does not campaign for a role.
type cooldown struct {
	until time.Duration // on the monotonic clock
	times int           // how often in a row work returned early
	done  bool          // work returned tenure.Done: never campaign again
	asked bool          // this member was asked to give the role up, so that others lead it
}

func newSpreadRun(ctx context.Context, s *Spread, work tenure.Work) *spreadRun {
	r := &spreadRun{Spread: s, work: work, cooldowns: map[string]cooldown{}, offered: map[string]time.Duration{}, givenUp: map[string]bool{}}
	r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	r.assumption = assumption{
		self: s.member.node.ID(), roles: len(s.names), adopted: map[string]time.Duration{}, standsIn: map[string]bool{}, givenBack: map[string]bool{},
	}
	return r
}
