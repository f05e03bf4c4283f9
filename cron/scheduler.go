package cron

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/reach"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/internal/wakeup"
	"github.com/exactly-one/tenure/postgres"
)

// Config configures a scheduler. The zero value is ready to use.
type Config struct {
	// Role is the role the scheduler campaigns for. Default: the role "scheduler".
	Role tenure.Role
	// Grace is how late a tick may run normally; a failover takes less. Older
	// ticks are missed, and CatchUp applies to them. Default 1 min.
	Grace time.Duration
	// PollInterval is the time between two reads of the schedules' rows, in
	// case the notification of a change is lost. Default 5 s.
	PollInterval time.Duration
	// Election contains other settings of the election.
	Election tenure.ElectionConfig
}

// Scheduler runs schedules while its node leads a role. It is safe for
// concurrent use.
type Scheduler struct {
	node     *tenure.Node
	election *tenure.Election
	tables   schema.Tables
	database postgres.Database
	config   Config

	orphanWait time.Duration

	replaced chan struct{} // the schedules were replaced

	mu        sync.Mutex
	schedules []timetable
	running   int // calls of Run: a second one is refused, but only later
}

// New returns a scheduler for a node. database must be the database of the node's backend
// and safe for concurrent use, like a pool, with at least one connection more than jobs
// use. Its user needs the privileges of [postgres.Backend.WorkGrants]. The error matches
// tenure.ErrUnsupported if the backend is not PostgreSQL; other errors come from
// [tenure.Node.Election].
func New(node *tenure.Node, database postgres.Database, config Config) (*Scheduler, error) {
	backend, ok := node.Backend().(*postgres.Backend)
	if !ok {
		return nil, fmt.Errorf("%w: schedules need sessions on PostgreSQL", tenure.ErrUnsupported)
	}
	if config.Role == (tenure.Role{}) {
		config.Role = tenure.NamedRole("scheduler")
	}
	config.Grace = cmp.Or(config.Grace, time.Minute)
	config.PollInterval = cmp.Or(config.PollInterval, 5*time.Second)
	switch {
	case config.Grace < 0:
		return nil, invalid("the grace is %v; it must be positive", config.Grace)
	case config.PollInterval < time.Millisecond:
		return nil, invalid("the poll interval is %v; it must be at least 1ms", config.PollInterval)
	}
	election, err := node.ElectionWith(config.Role, config.Election)
	if err != nil {
		return nil, err
	}
	return &Scheduler{
		node: node, election: election, tables: tablesOf(backend, database), database: database, config: config, orphanWait: orphanWait, replaced: make(chan struct{}, 1),
	}, nil
}

// Election returns the election of the scheduler's role.
func (s *Scheduler) Election() *tenure.Election { return s.election }

// Add adds a schedule. A new schedule, or one with a new expression or zone, ticks from
// the start of its first term. The error matches tenure.ErrInvalidConfig if the schedule
// is invalid, its name is taken, or the scheduler is running.
func (s *Scheduler) Add(schedule Schedule) error {
	parsed, err := schedule.withDefaults().parse()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running > 0 {
		return invalid("the scheduler is running: add %s before Run", schedule.Name)
	}
	for _, other := range s.schedules {
		if other.Name == schedule.Name {
			return invalid("the scheduler already has a schedule %s", schedule.Name)
		}
	}
	s.schedules = append(s.schedules, parsed)
	return nil
}

// Replace replaces the scheduler's schedules, also while it leads. A schedule with
// unchanged settings continues as before, and a changed one as after a new term. No
// further run of an omitted schedule starts. If a schedule is invalid or a name occurs
// twice, the error matches tenure.ErrInvalidConfig and nothing changes.
func (s *Scheduler) Replace(schedules ...Schedule) error {
	var all []timetable
	taken := map[string]bool{}
	for _, schedule := range schedules {
		parsed, err := schedule.withDefaults().parse()
		if err != nil {
			return err
		}
		if taken[schedule.Name] {
			return invalid("two schedules have the name %s", schedule.Name)
		}
		taken[schedule.Name] = true
		all = append(all, parsed)
	}
	s.mu.Lock()
	s.schedules = all
	s.mu.Unlock()
	wakeup.Send(s.replaced)
	return nil
}

// timetables returns the current schedules.
func (s *Scheduler) timetables() []timetable {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.schedules)
}

// Run campaigns for the role and, in each term, runs the schedules, until ctx ends. Then,
// and whenever a term is stopping, no more jobs start, and running jobs may finish within
// the node's StopTimeout. If the database cannot be reached for some time, although the
// node's session can, and no job runs, the node leaves the role to other nodes. Run
// returns the errors of [tenure.Election.Run].
func (s *Scheduler) Run(ctx context.Context) error {
	s.mu.Lock()
	s.running++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running--
	}()
	return s.election.Run(ctx, s.lead)
}

// lead runs the schedules in one term.
func (s *Scheduler) lead(ctx context.Context, term *tenure.Term) error {
	wakeups, stop := s.node.Subscribe()
	defer stop()
	l := &loop{
		work:       work{node: s.node, tables: s.tables, database: s.database, term: term},
		config:     s.config,
		orphanWait: s.orphanWait,
		log:        s.node.Logger().With("role", term.Role().Name(), "term", term.Number()),
		wakeups:    wakeups,
		replaced:   s.replaced,
		source:     s.timetables,
		active:     map[int64]*schedule{},
		finished:   make(chan struct{}, 1),
		began:      time.Now(),
		reach:      reach.Watch{Database: s.database},
	}
	l.adopt()
	return l.run(ctx)
}
