// Package connect opens the database given by the flags of a command, and implements
// common parts of commands.
package connect

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/internal/program/config"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/postgres"
)

// DatabaseFlags are the flags for the database, schema and table names.
type DatabaseFlags struct {
	Flags *pflag.FlagSet
	dsn   string
	local bool

	passwordCommand string

	Schema string
	Prefix string
}

// Register adds the flags.
func (f *DatabaseFlags) Register(flags *pflag.FlagSet) {
	f.Flags = flags
	flags.StringVar(&f.dsn, "dsn", "", "connection string: postgres://, mysql:// or sqlite:PATH; default from the environment, see tenure --help")
	flags.BoolVar(&f.local, "local", false, "use an SQLite file in the user's state directory, for programs on one machine")
	flags.StringVar(&f.passwordCommand, "password-command", "", "shell `command` that prints the password; it runs before each connection and may take 10s")
	flags.StringVar(&f.Schema, "schema", postgres.DefaultSchema, "schema with the tables, on PostgreSQL")
	flags.StringVar(&f.Prefix, "prefix", postgres.DefaultPrefix, "prefix of the table names")
}

// DSNVariables are the environment variables for the connection string, in order of
// precedence. When a command runs, --dsn has the value of the first set one.
var DSNVariables = []string{"TENURE_DSN", "PG_DSN", "DATABASE_URL"}

// libpqVariables are libpq's variables for the choice of a database.
var libpqVariables = []string{"PGHOST", "PGHOSTADDR", "PGSERVICE", "PGPORT", "PGDATABASE"}

// ConnectionString returns the connection string, or "" if libpq's variables
// contain everything. There is no default: with one, an unset variable would
// make each machine elect its own leader.
func (f *DatabaseFlags) ConnectionString() (string, error) {
	if f.Flags.Changed("dsn") {
		if strings.TrimSpace(f.dsn) == "" {
			return "", console.Usage("%s is empty", config.Origin(f.Flags, "dsn"))
		}
		return f.dsn, nil
	}
	for _, name := range libpqVariables {
		if os.Getenv(name) != "" {
			return "", nil
		}
	}
	return "", console.Usage("no database is named: use --dsn, set %s, database.dsn in the file of --config, or libpq's variables (PGHOST, PGSERVICE, ...), or use --local on a single machine",
		strings.Join(DSNVariables, ", "))
}

// NamesDatabase reports whether an environment variable names a database or contains
// credentials for it.
func NamesDatabase(variable string) bool {
	return slices.Contains(DSNVariables, variable) || variable == "TENURE_PASSWORD_COMMAND" || strings.HasPrefix(variable, libpqPrefix)
}

// libpqPrefix begins the name of every variable of libpq.
const libpqPrefix = "PG"

// WithoutLibpq removes libpq's variables: they would direct the nodes to another database
// than the private one.
func WithoutLibpq(environment []string) []string {
	var kept []string
	for _, entry := range environment {
		if !strings.HasPrefix(entry, libpqPrefix) {
			kept = append(kept, entry)
		}
	}
	return kept
}
