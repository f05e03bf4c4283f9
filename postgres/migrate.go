package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/installation"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one step. A program that does not know it, but all steps up to
// usableFrom, works with the schema all the same; 0: it must know this step.
type migration struct {
	up, down   string
	usableFrom int
}

// migrations are the steps to the present schema, in order: the version is the
// number of steps taken.
var migrations = []migration{
	{up: read("0001_elections.up.sql"), down: read("0001_elections.down.sql")},
	{up: read("0002_cluster.up.sql"), down: read("0002_cluster.down.sql")},
	{up: read("0003_work.up.sql"), down: read("0003_work.down.sql")},
	{up: read("0004_history.up.sql"), down: read("0004_history.down.sql")},
	{up: read("0005_samples.up.sql"), down: read("0005_samples.down.sql")},
	{up: read("0006_alerts.up.sql"), down: read("0006_alerts.down.sql")},
	{up: read("0007_days.up.sql"), down: read("0007_days.down.sql")},
	{up: read("0008_safety.up.sql"), down: read("0008_safety.down.sql")},
}

// newest is the version of the schema that this program makes.
func (b *Backend) newest() int { return len(b.steps) }

func read(name string) string {
	text, err := migrationFiles.ReadFile("migrations/" + name)
	if err != nil {
		panic(err) // embedded at compile time
	}
	return string(text)
}

const (
	createSchema = `CREATE SCHEMA IF NOT EXISTS {schema}`

	createMigrations = `
CREATE TABLE IF NOT EXISTS {migrations} (
    version integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    usable_from integer
)`

	dropMigrations  = `DROP TABLE {migrations}`
	recordMigration = `INSERT INTO {migrations} (version) VALUES ($1)`
	recordUsable    = `UPDATE {migrations} SET usable_from = $2 WHERE version = $1`
	readUsable      = `SELECT max(coalesce(usable_from, version)) FROM {migrations}`
	forgetMigration = `DELETE FROM {migrations} WHERE version = $1`
	readVersion     = `SELECT coalesce(max(version), 0) FROM {migrations}`
	schemaExists    = `SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1)`
	lockMigrations  = `SELECT pg_catalog.pg_advisory_xact_lock($1)`
)

// Migrate creates the schema, or brings an older one up to date. It does
// nothing if the schema is current, so any user may call it then. Any number of
// processes may call it at once: one works, the others wait. An error matches
// tenure.ErrSchema if the schema is newer and this package may not use it,
// tenure.ErrPrivilege if the user may not create it, tenure.ErrWrongMode if the
// installation elects by leases, and tenure.ErrInstallationInUse if the schema
// was removed under nodes that still live. The context bounds it; if it ends,
// nothing is changed.
func (b *Backend) Migrate(ctx context.Context) error {
	conn, err := b.connectForMigration(ctx)
	if err != nil {
		return err
	}
	defer discard(conn)
	return b.enterInstallation(ctx, conn, b.migrate)
}

// MigrateDown undoes migrations until the schema has the given version; 0
// removes all of it. No node may be running: an error that matches
// tenure.ErrInstallationInUse lists those that are.
func (b *Backend) MigrateDown(ctx context.Context, version int) error {
	if version < 0 || version > b.newest() {
		return invalid("the version is %d; it must be between 0 and %d", version, b.newest())
	}
	conn, err := b.connectForMigration(ctx)
	if err != nil {
		return err
	}
	defer discard(conn)
	present, err := b.readVersion(ctx, conn)
	switch {
	case err != nil || present <= version:
		return err
	case present > b.newest(): // how to undo that, this program does not know
		return b.newerSchema(present)
	}
	if err := b.claimInstallation(ctx, conn, "migrate down"); err != nil {
		return err
	}
	return b.inMigration(ctx, conn, func(tx pgx.Tx) error {
		present, err := b.readVersion(ctx, tx)
		if err != nil {
			return err
		}
		if present > b.newest() {
			return b.newerSchema(present)
		}
		for ; present > version; present-- {
			if _, err := tx.Exec(ctx, b.names.sql(b.steps[present-1].down)); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, b.names.sql(forgetMigration), present); err != nil {
				return err
			}
		}
		if version == 0 {
			_, err = tx.Exec(ctx, b.names.sql(dropMigrations))
		}
		return err
	})
}

// SchemaVersion reads the version of the schema in the database; 0 if there is
// none.
func (b *Backend) SchemaVersion(ctx context.Context) (int, error) {
	conn, err := b.connectForMigration(ctx)
	if err != nil {
		return 0, err
	}
	defer discard(conn)
	return b.readVersion(ctx, conn)
}

// CheckSchema returns an error that matches tenure.ErrSchema if the schema in the
// database is newer and this package may not use it. Who reads or changes its
// tables with statements of their own asks first; the methods of a Backend do so
// by themselves. An older schema, or none, is no error.
func (b *Backend) CheckSchema(ctx context.Context) error {
	return b.reader.ask(ctx, "look at the schema", func(ctx context.Context, conn *pgx.Conn) error {
		_, err := b.usableVersion(ctx, conn)
		return err
	})
}

// MigrationSQL returns a script that creates the present schema from nothing,
// for those who apply changes with tools of their own.
func (b *Backend) MigrationSQL() string {
	var script strings.Builder
	script.WriteString("BEGIN;\n\n" + b.claimSQL() + "\n\n" + createSchema + ";\n" + createMigrations + ";\n\n")
	for i, step := range b.steps {
		script.WriteString(strings.TrimSpace(step.up))
		fmt.Fprintf(&script, "\n\nINSERT INTO {migrations} (version) VALUES (%d);\n\n", i+1)
		if step.usableFrom > 0 {
			fmt.Fprintf(&script, "UPDATE {migrations} SET usable_from = %d WHERE version = %d;\n\n", step.usableFrom, i+1)
		}
	}
	script.WriteString("COMMIT;\n")
	return b.names.sql(script.String())
}

// claimSQL is the statement with which the script takes the installation's lock.
func (b *Backend) claimSQL() string {
	first, second := installation.LockKey(b.config.Schema, b.config.Prefix)
	return fmt.Sprintf(`DO %[1]s
BEGIN
    IF NOT pg_catalog.pg_try_advisory_xact_lock(%[2]d, %[3]d) THEN
        RAISE EXCEPTION 'nodes still live under this installation: end them first';
    END IF;
END
%[1]s;`, functionQuote, first, second)
}

// migrationTimeout bounds a migration that opening a session makes necessary, and
// the wait for that of another node.
const migrationTimeout = time.Hour

// migrator brings the schema up to date.
type migrator func(context.Context, *pgx.Conn) error

// migrate brings the schema up to date on a connection that holds the lock of
// the installation: exclusively to create it, else shared.
func (b *Backend) migrate(ctx context.Context, conn *pgx.Conn) error {
	return b.inMigration(ctx, conn, func(tx pgx.Tx) error {
		var exists bool
		if err := tx.QueryRow(ctx, schemaExists, b.config.Schema).Scan(&exists); err != nil {
			return err
		}
		if !exists { // IF NOT EXISTS alone needs the privilege to create
			if _, err := tx.Exec(ctx, b.names.sql(createSchema)); err != nil {
				return err
			}
		}
		present, err := b.readVersion(ctx, tx)
		if err != nil {
			return err
		}
		if present == 0 {
			if _, err := tx.Exec(ctx, b.names.sql(createMigrations)); err != nil {
				return err
			}
		}
		for ; present < b.newest(); present++ {
			if err := b.step(ctx, tx, present); err != nil {
				return err
			}
		}
		return nil
	})
}

// step takes one step up from a version.
func (b *Backend) step(ctx context.Context, tx pgx.Tx, from int) error {
	step := b.steps[from]
	if _, err := tx.Exec(ctx, b.names.sql(step.up)); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, b.names.sql(recordMigration), from+1)
	if err == nil && step.usableFrom > 0 {
		_, err = tx.Exec(ctx, b.names.sql(recordUsable), from+1, step.usableFrom)
	}
	return err
}

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// readVersion reads the version of the schema, 0 if there is none. In a
// transaction it must not fail, so it looks whether the table exists first.
func (b *Backend) readVersion(ctx context.Context, q querier) (int, error) {
	const exists = `SELECT pg_catalog.to_regclass($1) IS NOT NULL`
	var found bool
	if err := q.QueryRow(ctx, exists, b.names.sql("{migrations}")).Scan(&found); err != nil {
		if hasCode(err, codeInsufficientPrivilege) {
			return 0, fmt.Errorf("%w: GRANT USAGE ON SCHEMA %s TO this user: %w", tenure.ErrPrivilege, b.names.sql("{schema}"), err)
		}
		return 0, fmt.Errorf("read the schema's version: %w", err)
	}
	if !found {
		return 0, nil
	}
	var version int
	if err := q.QueryRow(ctx, b.names.sql(readVersion)).Scan(&version); err != nil {
		if hasCode(err, codeInsufficientPrivilege) {
			return 0, fmt.Errorf("%w: GRANT SELECT ON TABLE %s TO this user: %w", tenure.ErrPrivilege, b.names.sql("{migrations}"), err)
		}
		return 0, fmt.Errorf("read the schema's version: %w", err)
	}
	return version, nil
}

// usableVersion reads the version of the schema and refuses one that is newer
// than this program, unless its migrations say that the program may use it.
func (b *Backend) usableVersion(ctx context.Context, q querier) (int, error) {
	version, err := b.readVersion(ctx, q)
	if err != nil || version <= b.newest() {
		return version, err
	}
	var from int
	if err := q.QueryRow(ctx, b.names.sql(readUsable)).Scan(&from); err != nil {
		return 0, fmt.Errorf("read which programs may use the schema: %w", err)
	}
	if from > b.newest() {
		return version, b.newerSchema(version)
	}
	return version, nil
}

func (b *Backend) newerSchema(present int) error {
	return fmt.Errorf("%w: it has version %d and this program knows version %d: use a newer release of the program",
		tenure.ErrSchema, present, b.newest())
}

// hasCode reports whether an error came from PostgreSQL with this SQLSTATE.
func hasCode(err error, code string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == code
}
