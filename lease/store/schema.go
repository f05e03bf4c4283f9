package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// The names of the tables, after the prefix.
const (
	tableCandidate = "election_candidate"
	tableLeader    = "election_leader"
)

type table struct {
	name    string // without quotes
	quoted  string
	columns []column
	rest    string // what follows the columns in CREATE TABLE
}

type column struct {
	name       string
	definition string
	// added is true if Migrate adds the column to the tables of another library.
	added bool
}

func newTables(words *strings.Replacer, config Config) []table {
	tables := []table{
		{
			name:   config.Prefix + tableCandidate,
			quoted: "{candidates}",
			columns: []column{
				{"ns", "{namespace type} NOT NULL", false},
				{"candidate_id", "{id type} NOT NULL", false},
				{"last_heartbeat_at", "{time type} NOT NULL", false},
				{"expires_at", "{time type} NOT NULL", false},
			},
			rest: "PRIMARY KEY (ns, candidate_id)",
		},
		{
			name:   config.Prefix + tableLeader,
			quoted: "{leaders}",
			columns: []column{
				{"ns", "{namespace type} NOT NULL", false},
				{"leader_id", "{id type}", false},
				{"lease_expires_at", "{time type}", false},
				{"updated_at", "{time type} NOT NULL", false},
				{"term", "bigint NOT NULL DEFAULT 0", true},
				{"term_leader_id", "varchar(36)", true},
			},
			rest: "PRIMARY KEY (ns)",
		},
	}
	for i := range tables {
		t := &tables[i]
		t.quoted = words.Replace(t.quoted)
		t.rest = "\n    " + t.rest + "\n)" + words.Replace("{options}")
		for j := range t.columns {
			t.columns[j].definition = words.Replace(t.columns[j].definition)
		}
	}
	return tables
}

func (t table) create() string {
	var statement strings.Builder
	fmt.Fprintf(&statement, "CREATE TABLE %s (\n", t.quoted)
	for _, c := range t.columns {
		fmt.Fprintf(&statement, "    %s %s,\n", c.name, c.definition)
	}
	return statement.String() + strings.TrimPrefix(t.rest, "\n")
}

// readColumns lists the columns of a table, and whether each one is precise enough:
// on MySQL, times of whole seconds are too coarse for short leases.
var readColumns = map[sqldb.Dialect]string{
	sqldb.PostgreSQL: `
SELECT attname, 1
FROM pg_catalog.pg_attribute
WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped`,
	sqldb.SQLite: `
SELECT name, 1
FROM pragma_table_info(?)`,
	sqldb.MySQL: `
SELECT column_name, CASE WHEN datetime_precision < 6 THEN 0 ELSE 1 END
FROM information_schema.columns
WHERE table_schema = DATABASE() AND table_name = ?`,
}

// ensureTables migrates the tables on first use if necessary.
func (s *Store) ensureTables(ctx context.Context) error {
	if s.migrated.Load() {
		return nil
	}
	var statements []string
	err := s.db.Read(ctx, "examine the tables", func(ctx context.Context, on sqldb.Querier) (err error) {
		statements, err = s.missingSQL(ctx, on)
		return err
	})
	if err != nil {
		return err
	}
	if len(statements) == 0 {
		s.migrated.Store(true)
		return nil
	}
	return s.Migrate(ctx)
}

// checkTables returns an error unless the tables are complete. A caller's transaction
// does not migrate them.
func (s *Store) checkTables(ctx context.Context, on sqldb.Querier) error {
	if s.migrated.Load() {
		return nil
	}
	statements, err := s.missingSQL(ctx, on)
	if err == nil && len(statements) > 0 {
		return fmt.Errorf("%w: tables with the prefix %q are missing or lack columns: call Migrate before the transaction",
			dberr.ErrSchema, s.config.Prefix)
	}
	return err
}

// Migrate creates the tables. If there are tables of another library with the other
// columns, it adds the columns term and term_leader_id and, on MySQL, fractions of
// seconds. The other library can then elect in the same namespaces. Its tables keep their
// comparison of namespaces: on MySQL usually without regard to case and trailing spaces.
// The store rejects a namespace if it would share a row with another one.
//
// Many processes may call Migrate at the same time. The first use of a store outside
// a caller's transaction also migrates, and then needs the privilege.
func (s *Store) Migrate(ctx context.Context) error {
	if s.tx != nil {
		return fmt.Errorf("%w: cannot migrate the tables in a caller's transaction, which some databases would commit",
			tenure.ErrInvalidConfig)
	}
	if err := s.db.CheckAutocommit(ctx); err != nil {
		return err
	}
	err := s.inTx(ctx, "migrate the tables", func(ctx context.Context, on sqldb.Querier) error {
		unlock, err := s.lockMigrations(ctx, on)
		if err != nil {
			return err
		}
		defer unlock()
		statements, err := s.missingSQL(ctx, on)
		if err != nil {
			return err
		}
		for _, statement := range statements {
			if _, err := on.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		if len(statements) > 0 {
			s.config.Logger.Info("migrated the tables", "prefix", s.config.Prefix)
		}
		return nil
	})
	if err == nil {
		s.migrated.Store(true)
	}
	return err
}

// missingSQL returns the statements to complete the tables.
func (s *Store) missingSQL(ctx context.Context, on sqldb.Querier) ([]string, error) {
	var statements []string
	for _, table := range s.queries.tables {
		name := table.name
		if s.db.Dialect == sqldb.PostgreSQL {
			name = table.quoted
		}
		precise := map[string]bool{}
		err := sqldb.ForEach(ctx, on, s.db.Dialect.Render(s.queries.columns), func(rows *sql.Rows) error {
			var name string
			var enough bool
			if err := rows.Scan(&name, &enough); err != nil {
				return err
			}
			precise[strings.ToLower(name)] = enough
			return nil
		}, name)
		if err != nil {
			return nil, err
		}
		changes, err := table.changes(precise)
		if err != nil {
			return nil, err
		}
		statements = append(statements, changes...)
	}
	return statements, nil
}

// changes returns the statements to complete a table. precise has its columns, and whether
// each one is precise enough.
func (t table) changes(precise map[string]bool) ([]string, error) {
	if len(precise) == 0 {
		return []string{t.create()}, nil
	}
	var statements []string
	for _, c := range t.columns {
		switch enough, present := precise[c.name]; {
		case !present && !c.added:
			return nil, fmt.Errorf("%w: the table %s has no column %s, so another program owns it: choose another prefix",
				dberr.ErrSchema, t.name, c.name)
		case !present:
			statements = append(statements, fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s %s", t.quoted, c.name, c.definition))
		case !enough:
			statements = append(statements, fmt.Sprintf("ALTER TABLE %s MODIFY COLUMN %s %s", t.quoted, c.name, c.definition))
		}
	}
	return statements, nil
}
