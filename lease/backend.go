package lease

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/timespan"
	"github.com/exactly-one/tenure/internal/wakeup"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// DefaultPrefix is the default of [Config].Prefix.
const DefaultPrefix = "tenure_lease_"

// Config configures a [Backend]. The zero value is ready to use.
type Config struct {
	// Schema is the schema of the tables, on PostgreSQL only. It is created if it is
	// missing. The search path of the connections does not matter. Default: "public".
	Schema string
	// Prefix begins the names of the tables. All nodes of an installation must use
	// the same prefix. Default: [DefaultPrefix].
	Prefix string
	// PollInterval is the time between polls for changes, such as a released role
	// or a request. Default: 20 ms on SQLite, where a poll takes microseconds,
	// otherwise 100 ms; at least 1 ms.
	PollInterval time.Duration
	// KeepHistory is how long terms are kept after their end, at least 1 h; if it is
	// negative, they are kept for ever. Every node removes older terms, within ten
	// minutes of its start and then every hour. Default: [DefaultKeepHistory].
	KeepHistory time.Duration
	// ManualMigrations makes tenure.Open fail if the tables are missing or outdated,
	// instead of creating them.
	ManualMigrations bool
}

func (c Config) withDefaults(dialect sqldb.Dialect) Config {
	if c.Schema == "" {
		c.Schema = dialect.DefaultSchema()
	}
	c.Prefix = cmp.Or(c.Prefix, DefaultPrefix)
	if c.PollInterval == 0 {
		c.PollInterval = 100 * time.Millisecond
		if dialect == sqldb.SQLite {
			c.PollInterval = 20 * time.Millisecond
		}
	}
	c.KeepHistory = cmp.Or(c.KeepHistory, DefaultKeepHistory)
	return c
}

func (c Config) validate(dialect sqldb.Dialect) error {
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", tenure.ErrInvalidConfig, fmt.Sprintf(format, args...))
	}
	if err := errors.Join(dialect.CheckSchema(c.Schema), sqldb.CheckName("prefix", c.Prefix)); err != nil {
		return err
	}
	switch {
	case c.KeepHistory >= 0 && c.KeepHistory < time.Hour:
		return invalid("KeepHistory is %v; it must be at least 1h, or negative to keep the history for ever", c.KeepHistory)
	case c.PollInterval < time.Millisecond || c.PollInterval > timespan.Longest:
		return invalid("the poll interval is %v; it must be at least 1ms and at most %v", c.PollInterval, timespan.Longest)
	}
	return nil
}

// Backend runs elections with leases in the tables of one SQL database. It
// implements [tenure.Backend] and [tenure.Listener] and is safe for concurrent use.
// It keeps no connections, except on SQLite: there each waiting node keeps one
// connection of the pool.
type Backend struct {
	db     sqldb.DB
	config Config
	names  *strings.Replacer // of the placeholders in statements

	running wakeup.Group    // the background goroutines of all sessions
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
}

var (
	_ tenure.Backend  = (*Backend)(nil)
	_ tenure.Listener = (*Backend)(nil)
)

// NewBackend returns a Backend on a pool of connections. The caller closes the pool
// after the nodes and the backend. NewBackend does not connect. An error matches
// tenure.ErrInvalidConfig.
//
// On SQLite, all processes must run on one machine, and the file must not be on a
// network file system. Set journal_mode to WAL and synchronous to FULL. On MySQL,
// interpolateParams saves round trips. Behind a pooler of PostgreSQL, the driver must
// not prepare statements: with pgx, set default_query_exec_mode to exec.
func NewBackend(db *sql.DB, dialect Dialect, config Config) (*Backend, error) {
	spoken := sqldb.Dialect(dialect)
	if err := spoken.Validate(); err != nil {
		return nil, err
	}
	config = config.withDefaults(spoken)
	if err := config.validate(spoken); err != nil {
		return nil, err
	}
	b := &Backend{db: sqldb.DB{DB: db, Dialect: spoken}, config: config, names: placeholders(spoken, config)}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b, nil
}

// Close ends the background work of sessions and waits for it. Close the nodes
// first and the pool afterwards. Close may be called more than once.
func (b *Backend) Close() {
	b.cancel()
	b.running.Wait()
}

// Dialect returns the SQL dialect of the database.
func (b *Backend) Dialect() Dialect { return Dialect(b.db.Dialect) }

// DefaultLease is the optional method of a [tenure.Backend]: 3 s on SQLite, where no network
// lies between a node and its database, otherwise 10 s.
func (b *Backend) DefaultLease() time.Duration {
	if b.db.Dialect == sqldb.SQLite {
		return 3 * time.Second
	}
	return 10 * time.Second
}

// write runs fn, one statement that changes rows, with the retries of [sqldb.DB.InTx], but
// without a transaction if one would cost round trips.
func (b *Backend) write(ctx context.Context, doing string, fn func(context.Context, sqldb.Querier) error) error {
	if b.db.Dialect == sqldb.SQLite {
		return b.db.InTx(ctx, doing, fn)
	}
	ctx, cancel := sqldb.WithDefaultTimeout(ctx)
	defer cancel()
	for conflicts := 0; ; conflicts++ {
		err := fn(ctx, b.db)
		if err == nil || b.db.Dialect.FailureOf(err) != sqldb.FailureConflict || conflicts == sqldb.MaxConflicts || ctx.Err() != nil {
			return b.db.Dialect.Explain(doing, err)
		}
	}
}
