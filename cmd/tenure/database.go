package main

import (
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/cmd/tenure/internal/config"
	"github.com/exactly-one/tenure/postgres"
)

// databaseFlags are the flags that say which database, and where in it.
type databaseFlags struct {
	flags  *pflag.FlagSet
	dsn    string
	local  bool
	schema string
	prefix string
}

func (f *databaseFlags) register(flags *pflag.FlagSet) {
	f.flags = flags
	flags.StringVar(&f.dsn, "dsn", "", "connection string: postgres://, mysql:// or sqlite:PATH; default from the environment, see tenure --help")
	flags.BoolVar(&f.local, "local", false, "use an SQLite file in the user's state directory: for the programs of one machine")
	flags.StringVar(&f.schema, "schema", postgres.DefaultSchema, "schema with the tables, on PostgreSQL")
	flags.StringVar(&f.prefix, "prefix", postgres.DefaultPrefix, "what the names of the tables begin with")
}

// dsnVariables are the environment variables that hold a connection string, in
// the order in which they are tried; --dsn has the value of the first by the time
// that a command runs.
var dsnVariables = []string{"TENURE_DSN", "PG_DSN", "DATABASE_URL"}

// libpqVariables are those of libpq that say which database is meant.
var libpqVariables = []string{"PGHOST", "PGSERVICE", "PGPORT", "PGDATABASE"}

// connectionString returns the connection string, empty if the variables of
// libpq say everything. There is no default: one unset variable must not make
// every machine elect a leader of its own.
func (f *databaseFlags) connectionString() (string, error) {
	if f.flags.Changed("dsn") {
		if strings.TrimSpace(f.dsn) == "" {
			return "", usage("%s is empty", config.Origin(f.flags, "dsn"))
		}
		return f.dsn, nil
	}
	for _, name := range libpqVariables {
		if os.Getenv(name) != "" {
			return "", nil
		}
	}
	return "", usage("no database is named: give --dsn, or set %s, or database.dsn in the file of --config, or the variables of libpq (PGHOST, PGSERVICE, ...), or use --local on one machine alone",
		strings.Join(dsnVariables, ", "))
}

// withoutLibpq drops the variables of libpq, which would lead the nodes to
// another database than the private one.
func withoutLibpq(environment []string) []string {
	var kept []string
	for _, entry := range environment {
		if !strings.HasPrefix(entry, "PG") {
			kept = append(kept, entry)
		}
	}
	return kept
}
