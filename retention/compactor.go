package retention

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/features"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/internal/wakeup"
	"github.com/exactly-one/tenure/metrics"
	"github.com/exactly-one/tenure/postgres"
)

// Config configures a compactor. The zero value is ready to use.
type Config struct {
	// Keep is how long rows are kept before they are rolled up, at least 1 h.
	// Default: 90 days.
	Keep time.Duration
	// Role is the role of the compactor. Default: [cluster.LogCompactorRole].
	Role tenure.Role
	// Interval is the time between two searches for old rows. Default: 1 h.
	Interval time.Duration
	// BatchSize is the maximum number of rows per transaction. Default: 1,000.
	BatchSize int
	// Pause is the time between two transactions while old rows are left, so that
	// other transactions are not delayed. Default: 100 ms.
	Pause time.Duration
	// Election configures the election further.
	Election tenure.ElectionConfig
}

func (c Config) withDefaults() (Config, error) {
	c.Keep = cmp.Or(c.Keep, 90*24*time.Hour)
	if c.Role == (tenure.Role{}) {
		c.Role = cluster.LogCompactorRole
	}
	c.Interval = cmp.Or(c.Interval, time.Hour)
	c.BatchSize = cmp.Or(c.BatchSize, 1000)
	c.Pause = cmp.Or(c.Pause, 100*time.Millisecond)
	switch {
	case c.Keep < time.Hour:
		return c, fmt.Errorf("%w: Keep is %v; it must be at least 1h", tenure.ErrInvalidConfig, c.Keep)
	case c.Interval < 0 || c.Pause < 0:
		return c, fmt.Errorf("%w: the times of the compactor must not be negative", tenure.ErrInvalidConfig)
	case c.BatchSize < 1:
		return c, fmt.Errorf("%w: the batch size is %d; it must be at least 1", tenure.ErrInvalidConfig, c.BatchSize)
	}
	return c, nil
}

// Compactor rolls up old rows into daily totals while its node leads a role. It is safe
// for concurrent use.
type Compactor struct {
	node     *tenure.Node
	election *tenure.Election
	backend  *postgres.Backend
	schema   *schema.Schema
	database postgres.Database
	config   Config
}

// rollUp rolls up the rows of one table.
type rollUp struct {
	what string
	of   *schema.Feature // the owner of the table; nil for the core
	run  func(ctx context.Context, tx pgx.Tx) (count int, err error)
	full int // a count from which on more rows can be left
}

// rollUps returns all roll-ups in their order.
func (c *Compactor) rollUps() []rollUp {
	all := []rollUp{{"samples", features.Samples, func(ctx context.Context, tx pgx.Tx) (int, error) { return metrics.RollUpSamples(ctx, tx, c.backend) }, 1}}
	for _, s := range statements {
		all = append(all, rollUp{s.what, s.of, func(ctx context.Context, tx pgx.Tx) (count int, err error) {
			err = tx.QueryRow(ctx, c.schema.SQL(s.sql), c.config.Keep.Milliseconds(), c.config.BatchSize).Scan(&count)
			return count, err
		}, c.config.BatchSize})
	}
	return all
}

// New returns a Compactor for a node. database must be on the database of the node's
// backend, and its user needs the privileges of [postgres.Backend.CompactionGrants]. The
// error matches tenure.ErrInvalidConfig for an invalid setting and tenure.ErrUnsupported
// if the backend is not PostgreSQL, or is one of [tenure.Node.Election].
func New(node *tenure.Node, database postgres.Database, config Config) (*Compactor, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	backend, ok := node.Backend().(*postgres.Backend)
	if !ok {
		return nil, fmt.Errorf("%w: retention needs PostgreSQL with sessions", tenure.ErrUnsupported)
	}
	election, err := node.ElectionWith(config.Role, config.Election)
	if err != nil {
		return nil, err
	}
	return &Compactor{node: node, election: election, backend: backend, schema: schema.Of(backend), database: database, config: config}, nil
}

// Election returns the election of the compactor's role.
func (c *Compactor) Election() *tenure.Election { return c.election }

// Run campaigns for the role and rolls up old rows in each term, until ctx ends. Its
// transactions are fenced. It logs database errors and retries. It returns the errors of
// [tenure.Election.Run].
func (c *Compactor) Run(ctx context.Context) error { return c.election.Run(ctx, c.lead) }

// retryPause is the longest time to the next attempt after an error.
const retryPause = time.Minute

func (c *Compactor) lead(ctx context.Context, term *tenure.Term) error {
	logger := c.node.Logger().With("role", term.Role().Name(), "term", term.Number())
	for !termOver(ctx, term) {
		pause := c.config.Interval
		for _, r := range c.rollUps() {
			count, err := c.runBatch(ctx, term, r)
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil:
				logger.Warn("cannot roll up old rows", "rows", r.what, "error", err)
				pause = min(pause, retryPause)
				continue
			case count >= r.full:
				pause = min(pause, c.config.Pause)
			}
			if count > 0 {
				logger.Debug("rolled up old rows", "rows", r.what, "count", count)
			}
		}
		wakeup.Await(ctx, pause, term.Stopping())
	}
	return nil
}

// runBatch rolls up one batch of rows. The trust window bounds its statements, and the
// server ends the transaction after that time if the process is paused.
func (c *Compactor) runBatch(ctx context.Context, term *tenure.Term, r rollUp) (int, error) {
	if exist, err := c.exist(ctx, r.of); err != nil || !exist {
		return 0, err
	}
	timing := c.node.Timing()
	window := timing.Lease - timing.Margin
	ctx, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	count := 0
	options := pgx.TxOptions{BeginQuery: fmt.Sprintf(beginBounded, max(1, window.Milliseconds()))}
	err := postgres.InTxOptions(ctx, c.database, options, term, func(tx pgx.Tx) (err error) {
		count, err = r.run(ctx, tx)
		return err
	})
	return count, err
}

// exist creates the tables of totals and reports whether the tables of a feature exist.
func (c *Compactor) exist(ctx context.Context, f *schema.Feature) (bool, error) {
	if err := c.schema.Ensure(ctx, c.database, features.Rollups); err != nil || f == nil {
		return err == nil, err
	}
	return c.schema.Has(ctx, c.database, f)
}

func termOver(ctx context.Context, term *tenure.Term) bool {
	return ctx.Err() != nil || wakeup.Closed(term.Stopping())
}
