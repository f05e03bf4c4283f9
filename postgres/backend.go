package postgres

import (
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/pgdial"
	"github.com/exactly-one/tenure/internal/schema"
)

// Backend is elections on one PostgreSQL database. It implements
// [tenure.Backend] and is safe for concurrent use.
type Backend struct {
	config  Config
	connect *pgx.ConnConfig
	login   pgdial.Credentials
	names   names
	schema  *schema.Schema
	core    *schema.Feature
	dialer  *pgdial.Dialer
	reader  reader

	counters counters
	recent   recentTerms

	failedOpenings failedOpenings
	lineages       lineages
	taken          takenRequests
	offers         offerQueue

	// running counts the goroutines of all sessions.
	running sync.WaitGroup
}

var _ tenure.Backend = (*Backend)(nil)

// New makes a backend for a database. It does not connect. The connection
// string is a URL or key=value pairs, completed by the environment variables and the
// service file of libpq; it must lead directly to PostgreSQL, not to a pooler, and may
// name several hosts, of which the primary is used. A parameter that Tenure can neither
// honor nor ignore is refused. An error matches tenure.ErrInvalidConfig and never
// contains the connection string.
func New(dsn string, config Config) (*Backend, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	connect, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	named := schema.NewNames(config.Schema, config.Prefix)
	b := &Backend{config: config, connect: connect, login: pgdial.Credentials{DSN: dsn, Password: config.Password}, names: names{named}, core: core, dialer: pgdial.New(clocks.System())}
	b.schema = schema.New(named, config.ManualMigrations, upper{b})
	b.reader.init(b)
	return b, nil
}

// Close closes the connection for reads and waits for the goroutines of sessions.
// Close the node first. Close may be called more than once.
func (b *Backend) Close() {
	b.reader.close()
	b.running.Wait()
}
