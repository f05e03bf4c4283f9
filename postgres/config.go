package postgres

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgdial"
	"github.com/exactly-one/tenure/internal/schema"
)

// Defaults of [Config].
const (
	DefaultSchema          = "public"
	DefaultPrefix          = "tenure_"
	DefaultApplicationName = "tenure"
	DefaultWatchPeriod     = 30 * time.Second
)

const (
	maxIdentifier = 63 // bytes, a limit of PostgreSQL
	maxPrefix     = 32 // bytes, so that every name of an object fits
)

// Config configures a [Backend]. The zero value is ready to use.
type Config struct {
	// Schema is the schema of the tables, and Prefix begins the name of each.
	// Defaults: "public" and "tenure_". Every name is allowed, since it is
	// quoted; a prefix has at most 32 bytes.
	Schema string
	Prefix string

	// ManualMigrations keeps sessions from creating or upgrading the schema: they refuse
	// a missing or older schema with dberr.ErrSchema. Use it where the nodes' database
	// user may not create tables, with [Backend.Migrate] or [Backend.MigrationSQL] under
	// another user.
	ManualMigrations bool

	// ApplicationName begins the application_name of every connection, followed
	// by the node's name and the purpose. Default: "tenure".
	ApplicationName string

	// WatchPeriod bounds the duration of one call of the watch connection, and so how long
	// it can hold back the cleaning of dead rows in the whole database. Default and
	// maximum 30 s.
	WatchPeriod time.Duration

	// Password returns the password of each new connection, for example an expiring
	// token. It replaces the password of the connection string. It must return within a
	// few seconds: a node opens two connections within 10 s. It is called from several
	// goroutines; a panic is an error of the connection. Without it, a password comes
	// from the connection string, PGPASSWORD, the service file or the password file, read
	// again for each connection.
	Password func(ctx context.Context) (string, error)

	// Connect makes the connections instead of pgx.ConnectConfig, for example to log in
	// as a service does. It must use the given configuration: changes to anything but
	// credentials and address may break the protocol. It is called from several
	// goroutines; a panic is an error of the connection.
	Connect func(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error)
}

func (c Config) withDefaults() Config {
	c.Schema = cmp.Or(c.Schema, DefaultSchema)
	c.Prefix = cmp.Or(c.Prefix, DefaultPrefix)
	c.ApplicationName = cmp.Or(c.ApplicationName, DefaultApplicationName)
	c.WatchPeriod = cmp.Or(c.WatchPeriod, DefaultWatchPeriod)
	return c
}

// validate checks a configuration after its defaults are set.
func (c Config) validate() error {
	for _, name := range []struct {
		what, value string
		most        int
	}{
		{"schema", c.Schema, maxIdentifier},
		{"prefix", c.Prefix, maxPrefix},
		{"application name", c.ApplicationName, maxIdentifier},
	} {
		switch {
		case len(name.value) > name.most:
			return invalid("the %s has %d bytes; at most %d are allowed", name.what, len(name.value), name.most)
		case !utf8.ValidString(name.value) || strings.ContainsRune(name.value, 0):
			return invalid("the %s must be valid UTF-8 without NUL", name.what)
		}
		for _, quote := range []string{schema.FunctionQuote, schema.FeatureQuote} {
			if strings.Contains(name.value, quote) {
				return invalid("the %s must not contain %s", name.what, quote)
			}
		}
	}
	if c.WatchPeriod < time.Millisecond || c.WatchPeriod > DefaultWatchPeriod {
		return invalid("the watch period is %v; it must be between 1ms and %v", c.WatchPeriod, DefaultWatchPeriod)
	}
	return nil
}

// invalid reports an unusable setting.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", tenure.ErrInvalidConfig, fmt.Sprintf(format, args...))
}

// parse reads a connection string without ever repeating it in an error: it may
// contain a password.
func parse(dsn string) (*pgx.ConnConfig, error) {
	if dsn == "" && !environmentNamesServer() {
		return nil, invalid("no database is named: give a connection string, or set PGHOST, PGSERVICE or PGDATABASE")
	}
	return pgdial.ParseConfig(dsn)
}

func environmentNamesServer() bool {
	for _, name := range []string{"PGHOST", "PGHOSTADDR", "PGSERVICE", "PGDATABASE", "PGPORT", "PGUSER"} {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return false
}
