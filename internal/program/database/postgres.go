package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/pgdial"
	"github.com/exactly-one/tenure/lease"
	"github.com/exactly-one/tenure/postgres"
)

// modeParameter says, in a connection string of PostgreSQL, how elections are
// kept there. It is the program's own: servers and drivers never see it.
const modeParameter = "tenure_mode"

// connectTimeout bounds one attempt to connect to a server, where the connection
// string does not.
const connectTimeout = 5 * time.Second

// parsePostgres reads a URL or a list of key=value pairs.
func parsePostgres(dsn string, login Password) (*Target, error) {
	takeOut := takeFromPairs
	if _, isURL := schemeOf(dsn); isURL {
		takeOut = takeFromURL
	}
	rest, modes := takeOut(dsn, modeParameter)
	if len(modes) > 1 {
		return nil, invalid("%s is given more than once", modeParameter)
	}
	// A backend does not connect before it is used: this one only describes the fault of
	// a connection string without repeating it.
	backend, err := postgres.New(rest, postgres.Config{})
	if err != nil {
		return nil, err
	}
	backend.Close()
	dialer := pgdial.New(clocks.System())
	if len(modes) == 0 || modes[0] == "session" {
		return &Target{name: "PostgreSQL", session: rest, login: login, dialer: dialer}, nil
	}
	if modes[0] != "lease" {
		return nil, invalid("%s must be session or lease", modeParameter)
	}
	config, err := pgdial.ParseConfig(rest)
	if err != nil {
		return nil, err
	}
	return &Target{name: "PostgreSQL, by leases", dialect: lease.PostgreSQL, session: rest, login: login, open: openPostgres(rest, config, login, dialer), dialer: dialer}, nil
}

// openPostgres makes connections fit for a pooler in transaction mode. Such a pooler
// gives every transaction another session of the server, so nothing may be prepared in
// one for the next: each statement goes out whole, in one round trip. The pooler also
// refuses unknown startup parameters: openPostgres sends only parameters of the
// connection string, and some known to all poolers.
func openPostgres(dsn string, config *pgx.ConnConfig, login Password, dialer *pgdial.Dialer) func(context.Context) (*sql.DB, error) {
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.StatementCacheCapacity, config.DescriptionCacheCapacity = 0, 0
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = postgres.DefaultApplicationName
	}
	prepare := dialer.PreparePool(config, pgdial.Credentials{DSN: dsn, Password: login}, pgdial.Options{Pooled: true})
	return func(context.Context) (*sql.DB, error) {
		connector := stdlib.GetConnector(*config, stdlib.OptionBeforeConnect(prepare))
		return pooled(sql.OpenDB(&describedConnector{connector, config})), nil
	}
}

// describedConnector adds to an error where its connection should have led.
type describedConnector struct {
	driver.Connector
	config *pgx.ConnConfig
}

func (c *describedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if pgdial.Described(err) {
		return conn, err // it was found among several hosts
	}
	return conn, pgdial.Describe(c.config, err)
}

// idleTime is how long an idle connection is kept.
const idleTime = time.Minute

func pooled(db *sql.DB) *sql.DB {
	db.SetConnMaxIdleTime(idleTime)
	return db
}

// takeFromURL returns a URL without a parameter, and the parameter's values. All
// else stays as it was written.
func takeFromURL(dsn, name string) (rest string, values []string) {
	before, query, found := strings.Cut(dsn, "?")
	if !found {
		return dsn, nil
	}
	var kept []string
	for _, pair := range strings.Split(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if unescaped, err := url.QueryUnescape(key); err != nil || unescaped != name {
			kept = append(kept, pair)
			continue
		}
		if unescaped, err := url.QueryUnescape(value); err == nil {
			value = unescaped
		}
		values = append(values, value)
	}
	if len(kept) == 0 {
		return before, values
	}
	return before + "?" + strings.Join(kept, "&"), values
}
