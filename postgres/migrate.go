package postgres

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrations are the steps to the present schema, in order: the version is the
// number of steps taken.
var migrations = []struct{ up, down string }{
	{read("0001_elections.up.sql"), read("0001_elections.down.sql")},
	{read("0002_cluster.up.sql"), read("0002_cluster.down.sql")},
	{read("0003_work.up.sql"), read("0003_work.down.sql")},
	{read("0004_history.up.sql"), read("0004_history.down.sql")},
	{read("0005_samples.up.sql"), read("0005_samples.down.sql")},
	{read("0006_alerts.up.sql"), read("0006_alerts.down.sql")},
	{read("0007_days.up.sql"), read("0007_days.down.sql")},
}

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
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
)`

	dropMigrations  = `DROP TABLE {migrations}`
	recordMigration = `INSERT INTO {migrations} (version) VALUES ($1)`
	forgetMigration = `DELETE FROM {migrations} WHERE version = $1`
	readVersion     = `SELECT coalesce(max(version), 0) FROM {migrations}`
	schemaExists    = `SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1)`
	lockMigrations  = `SELECT pg_catalog.pg_advisory_xact_lock($1)`
)

// Migrate creates the schema, or brings an older one up to date. It does
// nothing if the schema is current, so any user may call it then. Any number of
// processes may call it at once: one works, the others wait. An error matches
// tenure.ErrSchema if the schema is newer than this package, and
// tenure.ErrPrivilege if the user may not create it. The context bounds it; if
// it ends, nothing is changed.
func (b *Backend) Migrate(ctx context.Context) error {
	conn, err := b.connectForMigration(ctx)
	if err != nil {
		return err
	}
	defer discard(conn)
	return b.migrate(ctx, conn)
}

// MigrateDown undoes migrations until the schema has the given version; 0
// removes all of it, and with it the term numbers: fencing tokens start again.
// No node may be running.
func (b *Backend) MigrateDown(ctx context.Context, version int) error {
	if version < 0 || version > len(migrations) {
		return invalid("the version is %d; it must be between 0 and %d", version, len(migrations))
	}
	conn, err := b.connectForMigration(ctx)
	if err != nil {
		return err
	}
	defer discard(conn)
	present, err := b.readVersion(ctx, conn)
	if err != nil || present <= version {
		return err
	}
	return b.inMigration(ctx, conn, func(tx pgx.Tx) error {
		present, err := b.readVersion(ctx, tx)
		if err != nil {
			return err
		}
		if present > len(migrations) {
			return newerSchema(present)
		}
		for ; present > version; present-- {
			if _, err := tx.Exec(ctx, b.names.sql(migrations[present-1].down)); err != nil {
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
// database is newer than this package: it may have another meaning then. Who reads
// or changes its tables with statements of their own asks first; the methods of a
// Backend do so by themselves. An older schema, or none, is no error.
func (b *Backend) CheckSchema(ctx context.Context) error {
	return b.reader.ask(ctx, "look at the schema", func(ctx context.Context, conn *pgx.Conn) error {
		version, err := b.readVersion(ctx, conn)
		if err == nil && version > len(migrations) {
			err = newerSchema(version)
		}
		return err
	})
}

// MigrationSQL returns a script that creates the present schema from nothing,
// for those who apply changes with tools of their own.
func (b *Backend) MigrationSQL() string {
	var script strings.Builder
	script.WriteString("BEGIN;\n\n" + createSchema + ";\n" + createMigrations + ";\n\n")
	for i, migration := range migrations {
		script.WriteString(strings.TrimSpace(migration.up))
		fmt.Fprintf(&script, "\n\nINSERT INTO {migrations} (version) VALUES (%d);\n\n", i+1)
	}
	script.WriteString("COMMIT;\n")
	return b.names.sql(script.String())
}

// migrate brings the schema up to date on a connection without a transaction.
func (b *Backend) migrate(ctx context.Context, conn *pgx.Conn) error {
	present, err := b.readVersion(ctx, conn)
	switch {
	case err != nil:
		return err
	case present > len(migrations):
		return newerSchema(present)
	case present == len(migrations):
		return nil
	}
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
		for ; present < len(migrations); present++ {
			if _, err := tx.Exec(ctx, b.names.sql(migrations[present].up)); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, b.names.sql(recordMigration), present+1); err != nil {
				return err
			}
		}
		return nil
	})
}

// A migration that waits for a table holds up everybody who comes after it,
// heartbeats and elections too. So it waits for so long only, lets the others pass,
// and tries again.
const (
	boundTableLocks = `SET LOCAL lock_timeout = '300ms'`
	migrationPause  = time.Second
)

// inMigration runs fn in a transaction while no other process migrates the same
// schema. It is called again where a transaction of others kept a table.
func (b *Backend) inMigration(ctx context.Context, conn *pgx.Conn, fn func(pgx.Tx) error) error {
	err := b.tryMigration(ctx, conn, fn)
	for hasCode(err, codeLockNotAvailable) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("migrate: a transaction keeps a table of the schema, see pg_stat_activity for long ones: %w", errors.Join(ctx.Err(), err))
		case <-time.After(migrationPause):
			err = b.tryMigration(ctx, conn, fn)
		}
	}
	if hasCode(err, codeInsufficientPrivilege) {
		return fmt.Errorf("%w: the schema needs a migration and this user may not create tables in %s: migrate as its owner, or GRANT CREATE ON SCHEMA %s: %w",
			tenure.ErrPrivilege, b.config.Schema, pgx.Identifier{b.config.Schema}.Sanitize(), err)
	}
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// tryMigration makes one attempt.
func (b *Backend) tryMigration(ctx context.Context, conn *pgx.Conn, fn func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
		sum := sha256.Sum256([]byte("tenure migrations\x00" + b.config.Schema + "\x00" + b.config.Prefix))
		if _, err := tx.Exec(ctx, lockMigrations, int64(binary.BigEndian.Uint64(sum[:8]))); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, boundTableLocks); err != nil {
			return err
		}
		return fn(tx)
	})
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

func newerSchema(present int) error {
	return fmt.Errorf("%w: it has version %d and this program knows version %d: use a newer release of the program",
		tenure.ErrSchema, present, len(migrations))
}

// hasCode reports whether an error came from PostgreSQL with this SQLSTATE.
func hasCode(err error, code string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == code
}
