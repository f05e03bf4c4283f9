package retention

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/metrics"
	"github.com/exactly-one/tenure/postgres"
)

// Config configures a compactor. The zero value is ready to use.
type Config struct {
	// Keep is for how long rows are kept as they are. Default 90 days, at least
	// an hour.
	Keep time.Duration
	// Role is what the compactor stands for. Default [cluster.LogCompactorRole].
	Role tenure.Role
	// Interval is the time between two looks for old rows. Default 1 h.
	Interval time.Duration
	// BatchSize is the most rows of a transaction. Default 1,000.
	BatchSize int
	// Pause is the time between two transactions when there is more to do, so
	// that others are not held up. Default 100 ms.
	Pause time.Duration
	// Election configures the election further.
	Election tenure.ElectionConfig
}

func (c Config) withDefaults() (Config, error) {
	if c.Keep == 0 {
		c.Keep = 90 * 24 * time.Hour
	}
	if c.Role == (tenure.Role{}) {
		c.Role = cluster.LogCompactorRole
	}
	if c.Interval == 0 {
		c.Interval = time.Hour
	}
	if c.BatchSize == 0 {
		c.BatchSize = 1000
	}
	if c.Pause == 0 {
		c.Pause = 100 * time.Millisecond
	}
	switch {
	case c.Keep < time.Hour:
		return c, fmt.Errorf("%w: rows are to be kept for %v; the least is an hour", tenure.ErrInvalidConfig, c.Keep)
	case c.Interval < 0 || c.Pause < 0:
		return c, fmt.Errorf("%w: the compactor's times must be positive", tenure.ErrInvalidConfig)
	case c.BatchSize < 1:
		return c, fmt.Errorf("%w: the batch size is %d; the least is 1", tenure.ErrInvalidConfig, c.BatchSize)
	}
	return c, nil
}

// Compactor folds old rows into sums of days while its node leads a role. It is
// safe for concurrent use.
type Compactor struct {
	node     *tenure.Node
	election *tenure.Election
	backend  *postgres.Backend
	database postgres.Database
	config   Config
}

// folding is what is done with the rows of one table.
type folding struct {
	what string
	fold func(ctx context.Context, tx pgx.Tx) (folded int, err error)
	most int // what fold takes away when there may be more
}

// foldings are all that are done, one after the other.
func (c *Compactor) foldings() []folding {
	all := []folding{{"samples", func(ctx context.Context, tx pgx.Tx) (int, error) { return metrics.RollUpSamples(ctx, tx, c.backend) }, 1}}
	for _, s := range statements {
		all = append(all, folding{s.what, func(ctx context.Context, tx pgx.Tx) (folded int, err error) {
			err = tx.QueryRow(ctx, c.backend.SQL(s.sql), c.config.Keep.Milliseconds(), c.config.BatchSize).Scan(&folded)
			return folded, err
		}, c.config.BatchSize})
	}
	return all
}

// New makes a compactor for a node, working in a database, which must be the one
// that the node's backend is on. Its user needs the privileges of
// [postgres.Backend.CompactionGrants]. It returns an error that matches
// tenure.ErrInvalidConfig if a setting cannot be used, tenure.ErrUnsupported if
// the backend is not PostgreSQL, and those of [tenure.Node.Election].
func New(node *tenure.Node, database postgres.Database, config Config) (*Compactor, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	backend, ok := node.Backend().(*postgres.Backend)
	if !ok {
		return nil, fmt.Errorf("%w: a history is kept on PostgreSQL only", tenure.ErrUnsupported)
	}
	election, err := node.ElectionWith(config.Role, config.Election)
	if err != nil {
		return nil, err
	}
	return &Compactor{node: node, election: election, backend: backend, database: database, config: config}, nil
}

// Election returns the election of the compactor's role.
func (c *Compactor) Election() *tenure.Election { return c.election }

// Run stands for the role and, in each term, folds old rows, until the context
// ends. What a term that has ended was about to do does not happen. Errors of
// the database are logged and tried again. It returns the errors of
// [tenure.Election.Run].
func (c *Compactor) Run(ctx context.Context) error { return c.election.Run(ctx, c.lead) }

// retryPause is the most time to the next look after an error.
const retryPause = time.Minute

func (c *Compactor) lead(ctx context.Context, term *tenure.Term) error {
	logger := c.node.Logger().With("role", term.Role().Name(), "term", term.Number())
	for !over(ctx, term) {
		pause := c.config.Interval
		for _, f := range c.foldings() {
			folded, err := c.fold(ctx, term, f)
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil:
				logger.Warn("folding old rows failed", "rows", f.what, "error", err)
				pause = min(pause, retryPause)
				continue
			case folded >= f.most:
				pause = min(pause, c.config.Pause)
			}
			if folded > 0 {
				logger.Debug("folded old rows", "rows", f.what, "count", folded)
			}
		}
		wait(ctx, term, pause)
	}
	return nil
}

// fold takes one batch of rows away. A statement waits for locks and answers no
// longer than the term may be trusted without a heartbeat, and the server ends
// the transaction of a process that stops within it by then.
func (c *Compactor) fold(ctx context.Context, term *tenure.Term, f folding) (int, error) {
	timing := c.node.Timing()
	window := timing.Lease - timing.Margin
	ctx, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	folded := 0
	options := pgx.TxOptions{BeginQuery: fmt.Sprintf(beginBounded, max(1, window.Milliseconds()))}
	err := postgres.InTxOptions(ctx, c.database, options, term, func(tx pgx.Tx) (err error) {
		folded, err = f.fold(ctx, tx)
		return err
	})
	return folded, err
}

func over(ctx context.Context, term *tenure.Term) bool {
	select {
	case <-ctx.Done():
		return true
	case <-term.Stopping():
		return true
	default:
		return false
	}
}

func wait(ctx context.Context, term *tenure.Term, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-term.Stopping():
	case <-ctx.Done():
	}
}
