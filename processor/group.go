package processor

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/retry"
)

// GroupConfig configures a group. The zero value is ready to use.
type GroupConfig struct {
	// RetryCooldown and RetryInterval say when to try again to lead while another
	// does, in case all news of the vacancy is lost: RetryCooldown after the
	// first attempt, the time doubling up to RetryInterval. A vacancy that the
	// node hears of, as it usually does within milliseconds, is taken at once. If
	// one is not set it is the other; if neither is, the node's CheckInterval
	// holds.
	RetryCooldown time.Duration
	RetryInterval time.Duration
	// Election configures the election further.
	Election tenure.ElectionConfig
}

// Group is processors that run together where their role is led. It is safe for
// concurrent use.
type Group struct {
	node     *tenure.Node
	election *tenure.Election
	backend  *postgres.Backend
	tables   schema.Tables
	database Database

	lineages sync.Map // by the processor's name

	mu         sync.Mutex
	processors map[string]Config
	running    bool
}

// NewGroup makes a group for a role that the node stands for, working in a
// database, which must be the one that the node's backend is on. It returns an
// error that matches tenure.ErrUnsupported if that is not PostgreSQL, and those
// of [tenure.Node.Election].
func NewGroup(node *tenure.Node, role tenure.Role, database Database, config GroupConfig) (*Group, error) {
	backend, ok := node.Backend().(*postgres.Backend)
	if !ok {
		return nil, fmt.Errorf("%w: processors need sessions on PostgreSQL", tenure.ErrUnsupported)
	}
	if config.RetryCooldown < 0 || config.RetryInterval < 0 || config.RetryInterval > 0 && config.RetryInterval < config.RetryCooldown {
		return nil, invalid("the retry cooldown is %v and the interval %v; neither may be negative, nor the interval the shorter one",
			config.RetryCooldown, config.RetryInterval)
	}
	if cooldown := cmp.Or(config.RetryCooldown, config.RetryInterval); cooldown > 0 && config.Election.Retry == nil {
		config.Election.Retry = retry.ExponentialBackoff{Base: cooldown, Max: cmp.Or(config.RetryInterval, cooldown)}
	}
	election, err := node.ElectionWith(role, config.Election)
	if err != nil {
		return nil, err
	}
	return &Group{node: node, election: election, backend: backend, tables: tablesOf(backend, database), database: database, processors: map[string]Config{}}, nil
}

// Election returns the election of the group's role.
func (g *Group) Election() *tenure.Election { return g.election }

// Add adds a processor. It returns an error that matches tenure.ErrInvalidConfig
// if it cannot be used, also for a name that is taken, or when the group runs.
func (g *Group) Add(config Config) error {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running {
		return invalid("the group already runs: add %s before", config.Name)
	}
	if _, taken := g.processors[config.Name]; taken {
		return invalid("the group already has a processor %s", config.Name)
	}
	g.processors[config.Name] = config
	return nil
}

// Run stands for the group's role and, in each term, runs all processors, until
// the context ends. Errors are those of [tenure.Election.Run].
func (g *Group) Run(ctx context.Context) error {
	g.mu.Lock()
	g.running = true
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.running = false
	}()
	return g.election.Run(ctx, g.lead)
}

// lead runs the processors under one term.
func (g *Group) lead(ctx context.Context, term *tenure.Term) error {
	logger := g.node.Logger().With("role", term.Role().Name(), "term", term.Number())
	wake := newWake(len(g.processors))
	var loops, listening sync.WaitGroup
	listen, stop := context.WithCancel(ctx)
	listening.Go(func() { wake.listen(listen, g.backend, g.node, logger) })
	index := 0
	for _, config := range g.processors {
		l := &loop{
			config: config, node: g.node, database: g.database, tables: g.tables, term: term,
			reader: newReader(g.database, config.Log, config.Selection, config.columns()),
			log:    logger.With("processor", config.Name), wake: wake.loops[index],
			lineages: &g.lineages,
		}
		index++
		loops.Go(func() { l.run(ctx) })
	}
	loops.Wait()
	stop()
	listening.Wait()
	return nil
}
