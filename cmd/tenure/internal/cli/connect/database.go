// Package connect opens the database that the flags of a command name, and holds
// what several commands do with it.
package connect

import (
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cmd/tenure/internal/config"
	"github.com/exactly-one/tenure/postgres"
)

// DatabaseFlags are the flags that say which database, and where in it.
type DatabaseFlags struct {
	Flags  *pflag.FlagSet
	dsn    string
	local  bool
	Schema string
	Prefix string
}

// Register adds the flags.
func (f *DatabaseFlags) Register(flags *pflag.FlagSet) {
	f.Flags = flags
	flags.StringVar(&f.dsn, "dsn", "", "connection string: postgres://, mysql:// or sqlite:PATH; default from the environment, see tenure --help")
	flags.BoolVar(&f.local, "local", false, "use an SQLite file in the user's state directory: for the programs of one machine")
	flags.StringVar(&f.Schema, "schema", postgres.DefaultSchema, "schema with the tables, on PostgreSQL")
	flags.StringVar(&f.Prefix, "prefix", postgres.DefaultPrefix, "what the names of the tables begin with")
}

// DSNVariables are the environment variables that hold a connection string, in
// the order in which they are tried; --dsn has the value of the first by the time
// that a command runs.
var DSNVariables = []string{"TENURE_DSN", "PG_DSN", "DATABASE_URL"}

// libpqVariables are those of libpq that say which database is meant.
var libpqVariables = []string{"PGHOST", "PGSERVICE", "PGPORT", "PGDATABASE"}

// ConnectionString returns the connection string, empty if the variables of
// libpq say everything. There is no default: one unset variable must not make
// every machine elect a leader of its own.
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
	return "", console.Usage("no database is named: give --dsn, or set %s, or database.dsn in the file of --config, or the variables of libpq (PGHOST, PGSERVICE, ...), or use --local on one machine alone",
		strings.Join(DSNVariables, ", "))
}

// WithoutLibpq drops the variables of libpq, which would lead the nodes to
// another database than the private one.
func WithoutLibpq(environment []string) []string {
	var kept []string
	for _, entry := range environment {
		if !strings.HasPrefix(entry, "PG") {
			kept = append(kept, entry)
		}
	}
	return kept
}
