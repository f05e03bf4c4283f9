package lease

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/exactly-one/tenure"
)

// The tables of a store, after its prefix.
const (
	tableCandidate = "election_candidate"
	tableLeader    = "election_leader"
)

// storeTable is one table of a store.
type storeTable struct {
	name    string // without quotes
	quoted  string
	columns []storeColumn
	rest    string // what follows the columns in CREATE TABLE
}

// storeColumn is one column.
type storeColumn struct {
	name       string
	definition string
	// added columns are those that the Python library's tables lack.
	added bool
}

func storeTables(words *strings.Replacer, config StoreConfig) []storeTable {
	tables := []storeTable{
		{
			name:   config.Prefix + tableCandidate,
			quoted: "{candidates}",
			columns: []storeColumn{
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
			columns: []storeColumn{
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

func (t storeTable) create() string {
	var statement strings.Builder
	fmt.Fprintf(&statement, "CREATE TABLE %s (\n", t.quoted)
	for _, c := range t.columns {
		fmt.Fprintf(&statement, "    %s %s,\n", c.name, c.definition)
	}
	return statement.String() + strings.TrimPrefix(t.rest, "\n")
}

// storeColumns list the columns of a table, and whether they are precise enough:
// the Python library's on MySQL round to seconds, which a short lease does not
// survive.
var storeColumns = map[Dialect]string{
	PostgreSQL: `
SELECT attname, 1
FROM pg_catalog.pg_attribute
WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped`,
	SQLite: `
SELECT name, 1
FROM pragma_table_info(?)`,
	MySQL: `
SELECT column_name, CASE WHEN datetime_precision < 6 THEN 0 ELSE 1 END
FROM information_schema.columns
WHERE table_schema = DATABASE() AND table_name = ?`,
}

// storeTurns make migrations wait for each other. On SQLite the file is locked.
var storeTurns = map[Dialect]string{
	PostgreSQL: "SELECT pg_advisory_xact_lock(hashtextextended(?, 0))",
	MySQL:      "SELECT GET_LOCK(?, ?)",
}

// ready sees to the tables before the first use.
func (s *Store) ready(ctx context.Context) error {
	if s.migrated.Load() {
		return nil
	}
	var statements []string
	err := s.read(ctx, "examine the tables", func(ctx context.Context, on querier) (err error) {
		statements, err = s.missing(ctx, on)
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

// mustFit is ready in a caller's transaction, where nothing is migrated.
func (s *Store) mustFit(ctx context.Context, on querier) error {
	if s.migrated.Load() {
		return nil
	}
	statements, err := s.missing(ctx, on)
	if err == nil && len(statements) > 0 {
		return fmt.Errorf("%w: tables with the prefix %q are missing or lack columns: call Migrate before the transaction",
			tenure.ErrSchema, s.config.Prefix)
	}
	return err
}

// Migrate creates the tables, or adds to those of the Python library what they
// lack: the columns term and term_leader_id and, on MySQL, the fractions of
// seconds. It changes nothing if nothing is lacking, and may be called by many
// processes at once. The first use of a store outside a caller's transaction
// migrates too, which then needs the privilege.
func (s *Store) Migrate(ctx context.Context) error {
	if s.tx != nil {
		return fmt.Errorf("%w: the tables cannot be migrated in a caller's transaction, which some databases would commit",
			tenure.ErrInvalidConfig)
	}
	if err := s.refuseOpenTransaction(ctx); err != nil {
		return err
	}
	err := s.inTurn(ctx, "migrate the tables", func(ctx context.Context, on querier) error {
		end, err := s.takeTurn(ctx, on)
		if err != nil {
			return err
		}
		defer end()
		statements, err := s.missing(ctx, on)
		if err != nil {
			return err
		}
		for _, statement := range statements {
			if _, err := on.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		if len(statements) > 0 {
			s.config.Logger.Info("the tables of the elections were migrated", "prefix", s.config.Prefix)
		}
		return nil
	})
	if err == nil {
		s.migrated.Store(true)
	}
	return err
}

// missing returns the statements that make the tables fit.
func (s *Store) missing(ctx context.Context, on querier) ([]string, error) {
	var statements []string
	for _, table := range s.queries.tables {
		precise := map[string]bool{}
		err := forEach(ctx, on, s.dialect.render(s.queries.columns), func(rows *sql.Rows) error {
			var name string
			var enough bool
			if err := rows.Scan(&name, &enough); err != nil {
				return err
			}
			precise[strings.ToLower(name)] = enough
			return nil
		}, table.name)
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

// changes returns the statements that make a table fit which has these columns,
// each precise enough or not.
func (t storeTable) changes(precise map[string]bool) ([]string, error) {
	if len(precise) == 0 {
		return []string{t.create()}, nil
	}
	var statements []string
	for _, c := range t.columns {
		switch enough, there := precise[c.name]; {
		case !there && !c.added:
			return nil, fmt.Errorf("%w: the table %s has no column %s, so it is another program's: choose another prefix",
				tenure.ErrSchema, t.name, c.name)
		case !there:
			statements = append(statements, fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s %s", t.quoted, c.name, c.definition))
		case !enough:
			statements = append(statements, fmt.Sprintf("ALTER TABLE %s MODIFY COLUMN %s %s", t.quoted, c.name, c.definition))
		}
	}
	return statements, nil
}
