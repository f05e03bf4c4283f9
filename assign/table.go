package assign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure/dberr"
)

// Querier runs single statements: a *pgxpool.Pool, a *pgx.Conn or a pgx.Tx.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// table describes the user's table in the database. It inserts the names and
// types of its objects into the SQL of this package.
type table struct {
	replacer *strings.Replacer
}

func (t table) sql(template string) string { return t.replacer.Replace(template) }

// column is a column as described by the catalog.
type column struct {
	name, typed        string
	kind               string // kind of the type: "e" is an enumeration
	notNull            bool
	readable, writable bool
	unique             bool // has a unique index on this column alone
}

// readTable reads the table's columns. The error matches
// tenure.ErrInvalidConfig if the table cannot be used, and dberr.ErrPrivilege
// if the user lacks a privilege.
func readTable(ctx context.Context, database Querier, config Config) (table, error) {
	name := config.Table.Sanitize()
	var columns []column
	rows, err := database.Query(ctx, readColumns, name)
	if err == nil {
		columns, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (c column, err error) {
			err = row.Scan(&c.name, &c.typed, &c.kind, &c.notNull, &c.readable, &c.writable, &c.unique)
			return c, err
		})
	}
	switch {
	case inClass(err, codeInsufficientPrivilege):
		return table{}, fmt.Errorf("%w: the database user cannot read the catalog entry of %s; see assign.Grants: %w", dberr.ErrPrivilege, name, err)
	case err != nil:
		return table{}, fmt.Errorf("read the columns of %s: %w", name, err)
	case len(columns) == 0:
		return table{}, invalid("there is no table %s, or it has no columns", name)
	}
	byName := map[string]column{}
	for _, c := range columns {
		byName[c.name] = c
	}
	if err := config.checkColumns(byName); err != nil {
		return table{}, err
	}
	return config.table(byName), nil
}

// The handled SQLSTATEs: codes, or classes by their first characters.
const (
	codeInsufficientPrivilege = "42501"
	classBadValue             = "22"
)

// inClass reports whether an error is a database error of a class, or with a code.
func inClass(err error, code string) bool {
	var failure *pgconn.PgError
	return errors.As(err, &failure) && strings.HasPrefix(failure.Code, code)
}

// checkColumns compares the columns with the requirements.
func (c Config) checkColumns(found map[string]column) error {
	texts := []string{"text", "character varying"}
	for _, need := range []requirement{
		{column: c.Columns.ID, notNull: true},
		{column: c.Columns.State, types: texts, enum: true, notNull: true, update: true},
		{column: c.Columns.Node, types: append([]string{"uuid"}, texts...), update: true},
		{column: c.Columns.Capability, types: texts, notNull: true},
		{column: c.Columns.Attempts, types: []string{"integer", "bigint"}, notNull: true, update: true},
		{column: c.Columns.Assignment, types: []string{"bigint"}, notNull: true, update: true},
		{column: c.Columns.Priority},
		{column: c.Columns.CreatedAt},
	} {
		if need.column == "" {
			continue
		}
		is, there := found[need.column]
		if err := c.checkColumn(need, is, there); err != nil {
			return err
		}
	}
	return nil
}

// requirement describes a required column.
type requirement struct {
	column  string
	types   []string // nil for any
	enum    bool     // enumerations are also allowed
	notNull bool
	update  bool
}

func (c Config) checkColumn(need requirement, is column, there bool) error {
	name, quoted := c.Table.Sanitize(), pgx.Identifier{need.column}.Sanitize()
	typed := need.types == nil || slices.Contains(need.types, is.typed) || need.enum && is.kind == "e"
	privileged := is.readable && (is.writable || !need.update)
	switch {
	case !there:
		return invalid("the table %s has no column %s", name, quoted)
	case !typed:
		return invalid("the column %s of %s is %s; it must be one of %s", quoted, name, is.typed, strings.Join(need.types, ", "))
	case need.notNull && !is.notNull:
		return invalid("the column %s may be null; run: ALTER TABLE %s ALTER COLUMN %s SET NOT NULL", quoted, name, quoted)
	case need.column == c.Columns.Node && is.notNull:
		return invalid("the column %s may not be null; run: ALTER TABLE %s ALTER COLUMN %s DROP NOT NULL", quoted, name, quoted)
	case need.column == c.Columns.ID && !is.unique:
		return invalid("the column %s of %s needs a unique index on this column alone", quoted, name)
	case !privileged:
		return fmt.Errorf("%w: the database user lacks a privilege on the column %s of %s; see assign.Grants", dberr.ErrPrivilege, quoted, name)
	}
	return nil
}

// table returns the replacer for the SQL of this package.
func (c Config) table(columns map[string]column) table {
	chosen := []string{c.Columns.ID, c.Columns.Capability, c.Columns.Attempts, c.Columns.Priority, c.Columns.CreatedAt}
	chosen = slices.DeleteFunc(chosen, func(name string) bool { return name == "" })
	for i, name := range chosen {
		chosen[i] = "t." + pgx.Identifier{name}.Sanitize()
	}
	pairs := []string{
		"{table}", c.Table.Sanitize(),
		"{order}", c.order("t."),
		"{chosen_order}", c.order("chosen."),
		"{chosen_columns}", strings.Join(chosen, ", "),
	}
	for placeholder, name := range map[string]string{
		"id": c.Columns.ID, "state": c.Columns.State, "node": c.Columns.Node, "capability": c.Columns.Capability,
		"attempts": c.Columns.Attempts, "assignment": c.Columns.Assignment,
	} {
		pairs = append(pairs,
			"{"+placeholder+"}", pgx.Identifier{name}.Sanitize(),
			"{"+placeholder+":type}", columns[name].typed,
		)
	}
	return table{strings.NewReplacer(pairs...)}
}

// order returns the ORDER BY list for assigning rows, with a prefix for the
// columns.
func (c Config) order(prefix string) string {
	var terms []string
	if c.Columns.Priority != "" {
		terms = append(terms, prefix+pgx.Identifier{c.Columns.Priority}.Sanitize()+" DESC NULLS LAST")
	}
	if c.Columns.CreatedAt != "" {
		terms = append(terms, prefix+pgx.Identifier{c.Columns.CreatedAt}.Sanitize())
	}
	return strings.Join(append(terms, prefix+pgx.Identifier{c.Columns.ID}.Sanitize()), ", ")
}
