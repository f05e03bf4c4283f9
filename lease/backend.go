package lease

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// DefaultPrefix is what the names of a backend's tables begin with.
const DefaultPrefix = "tenure_lease_"

// Config configures a [Backend]. The zero value is ready to use.
type Config struct {
	// Schema is the schema of the tables, on PostgreSQL only. It is created if
	// it is missing. Default: where the connection's search path leads.
	Schema string
	// Prefix is what the names of the tables begin with; default
	// [DefaultPrefix]. All nodes that are to meet must have the same.
	Prefix string
	// PollInterval is the time between questions whether something has changed:
	// how soon a resignation or a request is noticed. Default 20 ms on SQLite,
	// where a question costs microseconds, else 100 ms; at least 1 ms.
	PollInterval time.Duration
	// KeepHistory is how long terms are kept after their end; default
	// [DefaultKeepHistory], at least an hour, and for ever if it is negative. Every
	// node removes what is older, within ten minutes of its start and then each
	// hour.
	KeepHistory time.Duration
	// ManualMigrations makes opening a session fail if the tables are missing or
	// older, instead of creating them.
	ManualMigrations bool
}

func (c Config) withDefaults(dialect sqldb.Dialect) Config {
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if c.PollInterval == 0 {
		c.PollInterval = 100 * time.Millisecond
		if dialect == sqldb.SQLite {
			c.PollInterval = 20 * time.Millisecond
		}
	}
	if c.KeepHistory == 0 {
		c.KeepHistory = DefaultKeepHistory
	}
	return c
}

// maxPrefix leaves room for the names of tables and indexes within the 63 bytes
// that PostgreSQL keeps of a name.
const maxPrefix = 40

func (c Config) validate(dialect sqldb.Dialect) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", tenure.ErrInvalidConfig, fmt.Sprintf(format, args...))
	}
	for what, name := range map[string]string{"schema": c.Schema, "prefix": c.Prefix} {
		switch {
		case len(name) > maxPrefix:
			return bad("the %s %q is longer than %d bytes", what, name, maxPrefix)
		case strings.ContainsAny(name, "\x00?%{}"):
			return bad("the %s %q contains one of ? %% { } or a zero byte", what, name)
		}
	}
	switch {
	case c.Schema != "" && dialect != sqldb.PostgreSQL:
		return bad("%s has no schemas within a database", dialect)
	case c.KeepHistory >= 0 && c.KeepHistory < time.Hour:
		return bad("the history is to be kept for %v; the least is an hour", c.KeepHistory)
	case c.PollInterval < time.Millisecond:
		return bad("the poll interval is %v; the least is 1ms", c.PollInterval)
	}
	return nil
}

// Backend is elections by leases in the tables of one SQL database. It
// implements [tenure.Backend] and [tenure.Listener] and is safe for concurrent
// use. It keeps no connection of its own, but
// on SQLite one of the pool for each node that waits.
type Backend struct {
	db      sqldb.DB
	config  Config
	queries queries

	// running counts the goroutines of all sessions.
	running sync.WaitGroup
	open    context.Context // ends with Close
	close   context.CancelFunc
}

var (
	_ tenure.Backend  = (*Backend)(nil)
	_ tenure.Listener = (*Backend)(nil)
)

// NewBackend makes a backend on a pool of connections, which stays the caller's
// to close, after the nodes. It does not connect. An error matches
// tenure.ErrInvalidConfig.
//
// On SQLite all processes must be on one machine, and on a file system that
// locks: not on a network. Set journal_mode to WAL and synchronous to FULL. On
// MySQL no option is needed; interpolateParams saves round trips. Behind a
// pooler of PostgreSQL the driver must not prepare statements: with pgx set
// default_query_exec_mode to exec.
func NewBackend(db *sql.DB, dialect Dialect, config Config) (*Backend, error) {
	spoken := sqldb.Dialect(dialect)
	if err := spoken.Validate(); err != nil {
		return nil, err
	}
	config = config.withDefaults(spoken)
	if err := config.validate(spoken); err != nil {
		return nil, err
	}
	b := &Backend{db: sqldb.DB{DB: db, Dialect: spoken}, config: config, queries: newQueries(spoken, config)}
	b.open, b.close = context.WithCancel(context.Background())
	return b, nil
}

// Close waits for what sessions do beside. Close the node first, and the pool
// afterwards. It may be called more than once.
func (b *Backend) Close() {
	b.close()
	b.running.Wait()
}

// Dialect returns the SQL that the database speaks.
func (b *Backend) Dialect() Dialect { return Dialect(b.db.Dialect) }

// DefaultLease implements [tenure.LeaseDefaulter]: 3 s on SQLite, where nothing
// comes between the node and its database, else 10 s.
func (b *Backend) DefaultLease() time.Duration {
	if b.db.Dialect == sqldb.SQLite {
		return 3 * time.Second
	}
	return 10 * time.Second
}

// write runs fn, one statement that changes something, as [Backend.atomically]
// does, but without a transaction around it where that costs round trips.
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
