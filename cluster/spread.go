package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster/internal/placement"
	"github.com/exactly-one/tenure/internal/timespan"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// defaultMoveDelay is the default of SpreadConfig.
const defaultMoveDelay = time.Second

// SpreadRole is a role shared by members.
type SpreadRole struct {
	Role tenure.Role
	// Requires are the labels a node needs to lead the role. While no live node has all of
	// them, the role has no leader.
	Requires map[string]string
	// Prefers are labels of preferred leaders; a node with more of them is preferred. They
	// decide where a vacant role goes, as far as every node gets its share. A role with a
	// leader moves to a preferred node only on request; see [PlanRebalance].
	Prefers map[string]string
	// PreferredNode is the name or id of the preferred leader. It works like Prefers and
	// counts more.
	PreferredNode string
}

// Partitions returns n roles with the names name/0, name/1 and so on.
func Partitions(name string, n int) []SpreadRole {
	roles := make([]SpreadRole, max(n, 0))
	for i := range roles {
		roles[i].Role = tenure.NamedRole(fmt.Sprintf("%s/%d", name, i))
	}
	return roles
}

// SpreadConfig configures a [Spread]. All sharing members should use the same roles.
type SpreadConfig struct {
	// Roles are the roles to share. Their names must differ.
	Roles []SpreadRole
	// Weight is this member's share relative to other members: a member with
	// weight 2 leads twice as many roles as one with weight 1. Default 1.
	Weight float64
	// MoveDelay is how long no node may have joined or left before roles move away from
	// their leaders: a starting cluster would move them repeatedly. Vacant roles are taken
	// over immediately. Default 1 s.
	MoveDelay time.Duration
	// Election configures the elections for the roles. NoReacquire and
	// ReconnectGrace have no effect here, because another member takes over a
	// lost role, nor have Requires, RequiresNodeRole, Prefers and TakeOverAfter:
	// each role has its own labels, and the placement decides who leads. Group and
	// GroupLimit must not be set.
	Election tenure.ElectionConfig
}

// Spread shares roles among the members of a cluster. Each member leads its
// share, and when a member joins or leaves, as few roles as possible move.
// Every member computes the same plan from the same registry; there is no
// coordinator. The election for each role ensures at most one leader even while
// members disagree. A Spread is safe for concurrent use.
type Spread struct {
	member         *Member
	name           string
	config         SpreadConfig
	names          []string // of the roles, sorted
	roles          map[string]tenure.Role
	placementRoles []placement.Role

	wake chan struct{} // makes the loop run again

	mu              sync.Mutex
	changed         chan struct{} // closed when one of the following fields changes
	running         bool
	plan            placement.Plan
	leaving         bool // the plan places no role on this member
	handOverWaiters int  // number of handOverAll calls that wait
	dirty           bool // the plan has to be applied again
	elections       map[string]*tenure.Election
	candidacies     map[string]*candidacy
}

// Spread returns a spread to share roles under a name. It does nothing before
// [Spread.Run]. An invalid setting matches tenure.ErrInvalidConfig or
// tenure.ErrInvalidRole.
func (m *Member) Spread(name string, config SpreadConfig) (*Spread, error) {
	config.Weight = cmp.Or(config.Weight, 1)
	config.MoveDelay = cmp.Or(config.MoveDelay, defaultMoveDelay)
	config.Election.NoReacquire = true // the spread decides when to campaign again
	config.Election.ReconnectGrace = 0
	config.Election.Requires, config.Election.RequiresNodeRole = nil, "" // the placement decides who leads
	config.Election.Prefers, config.Election.TakeOverAfter = nil, 0
	if m.noLeader {
		return nil, fmt.Errorf("%w: spread %q: this node has NoLeader, so it cannot share roles", tenure.ErrInvalidConfig, name)
	}
	s := &Spread{
		member: m, name: name, config: config, roles: make(map[string]tenure.Role, len(config.Roles)),
		wake: make(chan struct{}, 1), changed: make(chan struct{}),
		elections: map[string]*tenure.Election{}, candidacies: map[string]*candidacy{},
	}
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("spread %q: %w", name, err)
	}
	s.names = slices.Sorted(maps.Keys(s.roles))
	return s, nil
}

// validate checks the configuration and records the roles.
func (s *Spread) validate() error {
	if err := tenure.NamedRole(s.name).Validate(); err != nil {
		return fmt.Errorf("the name cannot be used: %w", err)
	}
	if weight := s.config.Weight; !(weight > 0) || math.IsInf(weight, 0) {
		return fmt.Errorf("%w: the weight is %v; it must be more than 0", tenure.ErrInvalidConfig, weight)
	}
	if s.config.Election.Group != "" || s.config.Election.GroupLimit != 0 {
		return fmt.Errorf("%w: Group and GroupLimit must not be set: the plan decides how many roles a node leads", tenure.ErrInvalidConfig)
	}
	if s.config.MoveDelay < 0 || s.config.MoveDelay > timespan.Longest {
		return fmt.Errorf("%w: the move delay is %v; it must be at least 0 and at most %v", tenure.ErrInvalidConfig, s.config.MoveDelay, timespan.Longest)
	}
	for _, r := range s.config.Roles {
		if err := r.Role.Validate(); err != nil {
			return err
		}
		name := r.Role.Name()
		if _, twice := s.roles[name]; twice {
			return fmt.Errorf("%w: the role %q is listed twice", tenure.ErrInvalidConfig, name)
		}
		s.roles[name] = r.Role
		s.placementRoles = append(s.placementRoles, placement.Role{
			Name: name, Requires: maps.Clone(r.Requires), Prefers: maps.Clone(r.Prefers), PreferredNode: r.PreferredNode,
		})
	}
	return nil
}

// Name returns the name of the spread.
func (s *Spread) Name() string { return s.name }

// Held returns the sorted names of the roles this member leads now.
func (s *Spread) Held() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var held []string
	for name, c := range s.candidacies {
		if c.election.IsLeader() {
			held = append(held, name)
		}
	}
	slices.Sort(held)
	return held
}

// SpreadPlan has the planned leaders of the roles of a spread.
type SpreadPlan struct {
	Placed   map[string]NodeID // by role
	Unplaced []UnplacedRole    // ordered by role
}

// UnplacedRole is a role without an eligible live node.
type UnplacedRole struct {
	Role   string
	Reason string
}

// Plan returns this member's current plan. It is empty until Run has read the
// registry.
func (s *Spread) Plan() SpreadPlan {
	s.mu.Lock()
	plan := s.plan // never modified, only replaced
	s.mu.Unlock()
	public := SpreadPlan{Placed: make(map[string]NodeID, len(plan.Placed)), Unplaced: unplacedRoles(plan)}
	for role, node := range plan.Placed {
		public.Placed[role] = node
	}
	return public
}

// Unplaced returns the roles without an eligible live node, with the reasons.
func (s *Spread) Unplaced() []UnplacedRole {
	s.mu.Lock()
	defer s.mu.Unlock()
	return unplacedRoles(s.plan)
}

func unplacedRoles(plan placement.Plan) []UnplacedRole {
	unplaced := make([]UnplacedRole, len(plan.Unplaced))
	for i, u := range plan.Unplaced {
		unplaced[i] = UnplacedRole(u)
	}
	return unplaced
}

// Run shares the roles until ctx ends. For every role placed here by the plan, it
// campaigns and calls work in a goroutine, as [tenure.Election.Run] does. When ctx ends,
// it hands the roles over to the remaining members, waits until work has returned, and
// returns nil.
//
// If work returns while its term is valid, the member steps down. After
// tenure.Done, it does not campaign for the role again until the next Run.
// Otherwise it campaigns again later, unless another member has taken over: if
// a role has no leader for longer than the node's CheckInterval, another
// eligible member takes it.
//
// The error matches tenure.ErrAlreadyStarted if the spread is running,
// tenure.ErrClosed if the member leaves, tenure.ErrUnsupported if the backend
// has no registry, and tenure.ErrDuplicateRole if the node already campaigns
// for one of the roles elsewhere.
func (s *Spread) Run(ctx context.Context, work tenure.Work) error {
	s.mu.Lock()
	if s.running {
		s.mu.Unlock()
		return fmt.Errorf("spread %q: %w", s.name, tenure.ErrAlreadyStarted)
	}
	s.running = true
	s.mu.Unlock()
	err := newSpreadRun(ctx, s, work).run(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running, s.plan = false, placement.Plan{}
	s.broadcastLocked()
	if err != nil {
		return fmt.Errorf("spread %q: %w", s.name, err)
	}
	return nil
}

// broadcastLocked wakes handOverAll and all other waits for a change.
func (s *Spread) broadcastLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// wakeLoop makes the loop run again.
func (s *Spread) wakeLoop() {
	wakeup.Send(s.wake)
}
