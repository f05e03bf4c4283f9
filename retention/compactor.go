package retention

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/features"
	"github.com/exactly-one/tenure/internal/reach"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/internal/sweeps"
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
	// Pause is the time between two transactions while old rows are left, for the sake of
	// other transactions. Default: 100 ms.
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

// rollUp rolls up the rows of one kind. run handles one batch of rows of before a time,
// from the end of the last batch on, and returns their number and its end.
type rollUp struct {
	what string
	of   *schema.Feature // the owner of the table; nil for the core
	run  func(ctx context.Context, tx pgx.Tx, before, from time.Time) (count int, end time.Time, err error)
}

// rollUps returns all roll-ups in their order.
func (c *Compactor) rollUps() []rollUp {
	all := []rollUp{{sweeps.Samples, features.Samples, func(ctx context.Context, tx pgx.Tx, _, _ time.Time) (count int, end time.Time, err error) {
		count, err = metrics.RollUpSamples(ctx, tx, c.backend)
		return count, end, err
	}}}
	for _, s := range statements {
		all = append(all, rollUp{s.what, s.of, func(ctx context.Context, tx pgx.Tx, before, from time.Time) (count int, end time.Time, err error) {
			err = tx.QueryRow(ctx, c.schema.SQL(s.sql), before, c.config.BatchSize, from).Scan(&count, &end)
			return count, end, err
		}})
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

// Run campaigns for the role and rolls up old rows in each term, until ctx ends. Its
// transactions are fenced. It logs database errors and retries. It returns the errors of
// [tenure.Election.Run].
func (c *Compactor) Run(ctx context.Context) error { return c.election.Run(ctx, c.lead) }

// retryPause is the longest time to the next attempt after an error.
const retryPause = time.Minute

func (c *Compactor) lead(ctx context.Context, term *tenure.Term) error {
	logger := c.node.Logger().With("role", term.Role().Name(), "term", term.Number())
	watch := reach.Watch{Database: c.database}
	for !termOver(ctx, term) {
		pause, began := c.config.Interval, time.Now()
		if c.sweep(ctx, term, logger) {
			watch.Worked()
		} else {
			if err := watch.Failed(ctx, began); err != nil {
				return err
			}
			pause = min(pause, retryPause)
		}
		wakeup.Await(ctx, pause, term.Stopping())
	}
	return nil
}

// sweep rolls up all rows already old when it begins, one batch of each kind in turn, and
// reports whether none of them is left. The fixed age ends it while rows become old.
func (c *Compactor) sweep(ctx context.Context, term *tenure.Term, logger *slog.Logger) bool {
	var before time.Time
	err := c.inTx(ctx, term, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, readAge, c.config.Keep.Milliseconds()).Scan(&before)
	})
	if err != nil {
		if ctx.Err() == nil {
			logger.Warn("cannot roll up old rows", "error", err)
		}
		return false
	}
	left, from, complete := c.rollUps(), map[string]time.Time{}, true
	for len(left) > 0 && !termOver(ctx, term) {
		left = slices.DeleteFunc(left, func(r rollUp) bool {
			count, end, err := c.runBatch(ctx, term, r, before, from[r.what])
			switch {
			case ctx.Err() != nil:
				return true
			case err != nil:
				logger.Warn("cannot roll up old rows", "rows", r.what, "error", err)
				complete = false
			case count > 0:
				logger.Debug("rolled up old rows", "rows", r.what, "count", count)
				from[r.what] = end
				return false
			}
			c.record(ctx, term, logger, r, err)
			return true
		})
		if len(left) > 0 {
			wakeup.Await(ctx, c.config.Pause, term.Stopping())
		}
	}
	return complete
}

// record records how a sweep of a kind ended, for [List].
func (c *Compactor) record(ctx context.Context, term *tenure.Term, logger *slog.Logger, r rollUp, failure error) {
	if exist, err := c.exist(ctx, r.of); failure == nil && (err != nil || !exist) {
		return // there is nothing to roll up
	}
	text := ""
	if failure != nil {
		text = recordable(failure)
	}
	keep := c.config.Keep
	if r.what == sweeps.Samples {
		keep = metrics.SamplesKept
	}
	err := c.inTx(ctx, term, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, c.schema.SQL(recordSweep), r.what, keep.Milliseconds(), c.config.Interval.Milliseconds(), text)
		return err
	})
	if err != nil && ctx.Err() == nil {
		logger.Warn("cannot record the state of the retention", "rows", r.what, "error", err)
	}
}

// maxError is the maximum length of a recorded error in bytes.
const maxError = 1000

// recordable returns the text of an error as the database stores it.
func recordable(err error) string {
	text := strings.ReplaceAll(err.Error(), "\x00", "")
	return strings.ToValidUTF8(text[:min(len(text), maxError)], "")
}

// runBatch rolls up one batch of rows.
func (c *Compactor) runBatch(ctx context.Context, term *tenure.Term, r rollUp, before, from time.Time) (count int, end time.Time, err error) {
	if exist, err := c.exist(ctx, r.of); err != nil || !exist {
		return 0, end, err
	}
	err = c.inTx(ctx, term, func(ctx context.Context, tx pgx.Tx) error {
		count, end, err = r.run(ctx, tx, before, from)
		return err
	})
	return count, end, err
}

// inTx runs a fenced transaction. The trust window bounds its statements, and the server
// ends the transaction after this time if the process is paused.
func (c *Compactor) inTx(ctx context.Context, term *tenure.Term, run func(context.Context, pgx.Tx) error) error {
	timing := c.node.Timing()
	window := timing.Lease - timing.Margin
	ctx, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	options := pgx.TxOptions{BeginQuery: fmt.Sprintf(beginBounded, max(1, window.Milliseconds()))}
	return postgres.InTxOptions(ctx, c.database, options, term, func(tx pgx.Tx) error { return run(ctx, tx) })
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
