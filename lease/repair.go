package lease

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// MigrateRepair creates missing tables. It recreates a table, with its rows, if the table
// differs from the result of [Backend.Migrate]. Rows without a column of a key are
// removed. It returns the executed statements, or with dryRun the statements it would
// execute. No node may be running: an error matching dberr.ErrInstallationInUse lists the
// running nodes. An error matches dberr.ErrSchema if there are no tables. On PostgreSQL it
// changes nothing.
func (b *Backend) MigrateRepair(ctx context.Context, dryRun bool) (statements []string, err error) {
	version, err := b.SchemaVersion(ctx)
	switch {
	case err != nil:
		return nil, err
	case version > schemaVersion:
		return nil, newerSchema(version)
	}
	// On MySQL each statement commits. The last renaming of tables ends the damage, and
	// until then no node can open a session.
	err = b.db.InTx(ctx, "repair the tables", func(ctx context.Context, on sqldb.Querier) (err error) {
		if statements, err = b.planRepair(ctx, on); err != nil || dryRun || len(statements) == 0 {
			return err
		}
		for _, statement := range statements {
			if err := sqldb.Exec(ctx, on, statement); err != nil {
				return err
			}
		}
		if err := sqldb.Exec(ctx, on, b.sql(initializeQuery), schemaVersion); err != nil {
			return err
		}
		return sqldb.Exec(ctx, on, b.sql(setVersionQuery), schemaVersion, schemaVersion)
	})
	return statements, err
}

// planRepair returns the statements of a repair.
func (b *Backend) planRepair(ctx context.Context, on sqldb.Querier) (statements []string, err error) {
	found, err := b.readTables(ctx, on)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: there are no tables with prefix %q to repair; a node creates them, or tenure migrate", dberr.ErrSchema, b.config.Prefix)
	}
	for _, want := range b.wantedTables() {
		switch have := found[want.name]; {
		case have == nil:
			statements = append(statements, want.create)
		case !want.belongs(have):
			return nil, foreignTable(want.name)
		case len(want.differences(have)) > 0:
			statements = append(statements, b.remake(want, have)...)
		}
	}
	if len(statements) == 0 {
		return nil, nil
	}
	for _, query := range repairTermsQueries {
		statements = append(statements, b.sql(query))
	}
	return statements, b.refuseForRepair(ctx, on)
}

// refuseForRepair returns an error if a node has a live lease. A table of sessions without
// a column of a node's name still counts the leases. Without the columns of the leases, no
// heartbeat succeeds.
func (b *Backend) refuseForRepair(ctx context.Context, on sqldb.Querier) error {
	err := b.refuseLiveNodes(ctx, on)
	if err == nil || b.db.Dialect.FailureOf(err) != sqldb.FailureSchema {
		return err
	}
	live := 0
	err = sqldb.ForEach(ctx, on, b.sql(countLiveQuery), func(rows *sql.Rows) error { return rows.Scan(&live) })
	switch {
	case err != nil && b.db.Dialect.FailureOf(err) == sqldb.FailureSchema:
		return nil
	case err == nil && live > 0:
		err = fmt.Errorf("%w: %d nodes are running: stop them, or wait until their leases have expired", dberr.ErrInstallationInUse, live)
	}
	return err
}

// remake returns the statements to recreate a table, with the rows of the present one. A
// crash between two of them loses no row.
func (b *Backend) remake(want, have *table) []string {
	quote := b.db.Dialect.Quote
	next, last := quote(want.name+"_next"), quote(want.name+"_last")
	statements := []string{
		"DROP TABLE IF EXISTS " + next,
		strings.Replace(want.create, quote(want.name), next, 1),
	}
	if columns, values, possible := copied(want, have, quote); possible {
		insert := "INSERT OR IGNORE INTO "
		if b.db.Dialect == sqldb.MySQL {
			insert = "INSERT IGNORE INTO "
		}
		statements = append(statements, insert+next+" ("+columns+")\nSELECT "+values+"\nFROM "+quote(want.name))
	}
	if b.db.Dialect == sqldb.MySQL {
		return append(statements,
			"DROP TABLE IF EXISTS "+last,
			"RENAME TABLE "+quote(want.name)+" TO "+last+", "+next+" TO "+quote(want.name),
			"DROP TABLE "+last)
	}
	return append(statements, "DROP TABLE "+quote(want.name), "ALTER TABLE "+next+" RENAME TO "+quote(want.name))
}

// copied returns the columns a new table copies from the present one, and their values.
// Copying is not possible if a column of a key is missing.
func copied(want, have *table, quote func(string) string) (columns, values string, possible bool) {
	var into, from []string
	for _, name := range want.order {
		c := want.columns[name]
		_, present := have.columns[name]
		value := quote(name)
		switch {
		case !present && want.isKey(name):
			return "", "", false
		case !present && c.required && c.value == "":
			value = c.zero(name)
		case !present:
			continue
		case c.required && !want.isKey(name):
			value = "COALESCE(" + value + ", " + c.zero(name) + ")"
		}
		into, from = append(into, quote(name)), append(from, value)
	}
	return strings.Join(into, ", "), strings.Join(from, ", "), true
}

// isKey reports whether a column belongs to a key.
func (t *table) isKey(name string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(t.keys)), func(key string) bool {
		_, list, _ := strings.Cut(strings.TrimSuffix(key, ")"), " (")
		return slices.Contains(strings.Split(list, ", "), name)
	})
}

// zero returns the value of a lost column.
func (c column) zero(name string) string {
	switch {
	case name == "labels":
		return "'{}'"
	case c.value != "":
		return c.value
	case strings.Contains(c.kind, "int") || c.kind == "double":
		return "0"
	}
	return "''"
}
