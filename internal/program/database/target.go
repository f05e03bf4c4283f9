package database

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgdial"
	"github.com/exactly-one/tenure/internal/program/nearest"
	"github.com/exactly-one/tenure/lease"
	"github.com/exactly-one/tenure/postgres"
)

// Password returns the password of a new connection. It replaces the password of the
// connection string.
type Password func(context.Context) (string, error)

// Target is the database of a connection string.
type Target struct {
	name    string        // for display, without a password
	dialect lease.Dialect // of leases; 0 for sessions
	session string        // the connection string for package postgres
	login   Password      // for sessions; nil if the connection string has it
	open    func(ctx context.Context) (*sql.DB, error)
	dialer  *pgdial.Dialer // of the pools of PostgreSQL; nil for other databases
}

// scheme is one beginning of connection strings.
type scheme struct {
	name  string
	form  string // how connection strings of the scheme begin
	parse func(dsn string, login Password) (*Target, error)
}

func schemes() []scheme {
	return []scheme{
		{"postgres", "postgres://", parsePostgres},
		{"postgresql", "postgresql://", parsePostgres},
		{"mysql", "mysql://", parseMySQL},
		{"mariadb", "mariadb://", parseMySQL},
		{"sqlite", "sqlite:", parseSQLite},
	}
}

// Parse reads a connection string; login may be nil. It neither connects nor touches a database
// file. An empty string is PostgreSQL as the variables of libpq name it. Errors
// match tenure.ErrInvalidConfig.
func Parse(dsn string, login Password) (*Target, error) {
	name, hasScheme := schemeOf(dsn)
	if !hasScheme {
		return parsePostgres(dsn, login)
	}
	var forms, names []string
	for _, known := range schemes() {
		switch {
		case name != known.name:
		case strings.HasPrefix(dsn[len(name):], known.form[len(name):]):
			return known.parse(known.name+dsn[len(name):], login)
		default:
			return nil, invalid("a connection string of %s begins with %s", name, known.form)
		}
		forms = append(forms, known.form)
		names = append(names, known.name)
	}
	suggestion := ""
	if near := nearest.Of(name, names); near != "" {
		suggestion = fmt.Sprintf("did you mean %q? ", near)
	}
	return nil, invalid("unknown scheme %q: %sknown are %s", name, suggestion, strings.Join(forms, ", "))
}

// schemeOf returns the text before the first colon, in lower case. Lists of key=value
// pairs have none.
func schemeOf(dsn string) (name string, found bool) {
	name, _, found = strings.Cut(dsn, ":")
	name = strings.ToLower(name)
	for i, r := range name {
		letter := r >= 'a' && r <= 'z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789+-.", r)) {
			return "", false
		}
	}
	return name, found && name != ""
}

// Leases reports whether elections are leases in tables, for [Target.Open] and
// package lease, and not sessions, for [Target.Backend] and package postgres.
func (t *Target) Leases() bool { return t.dialect != 0 }

// Dialect returns the SQL dialect of leases; 0 for sessions.
func (t *Target) Dialect() lease.Dialect { return t.dialect }

// Backend returns a backend of package postgres, also for a database of PostgreSQL with
// elections by leases. It does not connect.
func (t *Target) Backend(config postgres.Config) (*postgres.Backend, error) {
	config.Password = t.login
	return postgres.New(t.session, config)
}

// Open opens the database for leases. The file of SQLite is made if it is
// missing, and opened; servers are connected to by the first statement. The
// caller closes the database.
//
// When the context ends Open gives up, within some seconds where others have
// locked the file. An error matches tenure.ErrInvalidConfig if the user must
// change something: the path of a file, its permissions.
func (t *Target) Open(ctx context.Context) (*sql.DB, error) {
	if t.open == nil {
		return nil, invalid("%s is for sessions: tenure_mode=lease keeps leases in it", t.name)
	}
	return t.open(ctx)
}

// Place names the server and the database of sessions, without a user or a password.
func (t *Target) Place() string {
	config, err := pgdial.ParseConfig(t.session)
	if t.session == "" && t.dialect != 0 || err != nil {
		return t.name
	}
	hosts := []string{net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))}
	for _, other := range config.Fallbacks { // each host is there once with TLS and once without
		if host := net.JoinHostPort(other.Host, strconv.Itoa(int(other.Port))); !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return cmp.Or(config.Database, config.User) + " on " + strings.Join(hosts, " or ")
}

// String names the database for display, without a password.
func (t *Target) String() string { return t.name }

// invalid reports a fault for the user to mend.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", tenure.ErrInvalidConfig, fmt.Errorf(format, args...))
}
