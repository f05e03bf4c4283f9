package lease

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/installation"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// schemaVersion is the required version of the tables.
const schemaVersion = installation.LeasesVersion

// Migrate creates the tables if they are missing. Many processes may call it at the
// same time. The error matches dberr.ErrSchema if the tables have a newer version, and
// on PostgreSQL dberr.ErrWrongMode if the installation elects by sessions.
func (b *Backend) Migrate(ctx context.Context) error {
	if err := b.claimMode(ctx); err != nil {
		return err
	}
	version, err := b.SchemaVersion(ctx)
	switch {
	case err != nil:
		return err
	case version > schemaVersion:
		return newerSchema(version)
	case version == schemaVersion:
		return b.damage(ctx, true)
	}
	if err := b.damage(ctx, false); err != nil {
		return err
	}
	err = b.db.InTx(ctx, "create the tables", b.createTables)
	return cmp.Or(err, b.damage(ctx, true))
}

// createTables creates the missing tables.
func (b *Backend) createTables(ctx context.Context, on sqldb.Querier) error {
	if b.db.Dialect == sqldb.PostgreSQL {
		if _, err := on.ExecContext(ctx, b.sql(versionLockQuery)); err != nil {
			return err
		}
	}
	for _, table := range b.tables() {
		if _, err := on.ExecContext(ctx, table); err != nil {
			return err
		}
	}
	for _, columns := range columnsOfTables {
		err := sqldb.ForEach(ctx, on, b.sql(columns), func(*sql.Rows) error { return nil })
		if err != nil && b.db.Dialect.FailureOf(err) == sqldb.FailureSchema {
			return fmt.Errorf("%w: another program, or an installation with sessions, owns a table of the same name: choose another prefix: %w", dberr.ErrSchema, err)
		}
		if err != nil {
			return err
		}
	}
	return sqldb.Exec(ctx, on, b.sql(initializeQuery), schemaVersion)
}

// SchemaVersion returns the version of the tables in the database, or 0 if there are
// none.
func (b *Backend) SchemaVersion(ctx context.Context) (int, error) {
	version := 0
	err := b.db.Read(ctx, "read the version of the tables", func(ctx context.Context, on sqldb.Querier) error {
		return sqldb.ForEach(ctx, on, b.sql(schemaVersionQuery), func(rows *sql.Rows) error { return rows.Scan(&version) })
	})
	if errors.Is(err, dberr.ErrSchema) {
		return 0, nil
	}
	return version, err
}

// MigrationSQL returns the statements of [Backend.Migrate] on an empty database, for
// operators who create the tables themselves.
func (b *Backend) MigrationSQL() string {
	statements := append(b.claimStatements(), b.tables()...)
	fill := strings.NewReplacer("$1", strconv.Itoa(schemaVersion), "?", strconv.Itoa(schemaVersion)).Replace(b.sql(initializeQuery))
	return strings.Join(append(statements, fill), ";\n\n") + ";\n"
}

func newerSchema(version int) error {
	return fmt.Errorf("%w: the tables have version %d and this program supports only %d: upgrade the program", dberr.ErrSchema, version, schemaVersion)
}

// minVersions lists the oldest supported versions. The statements need upserts on
// SQLite and SKIP LOCKED on the other databases.
var minVersions = map[string][2]int{
	"PostgreSQL": {14, 0}, "SQLite": {3, 24}, "MySQL": {8, 0}, "MariaDB": {10, 6},
}

// productName returns the name of the database product. MariaDB uses MySQL's protocol,
// so the version distinguishes the two.
func productName(dialect sqldb.Dialect, version string) string {
	if strings.Contains(version, "MariaDB") {
		return "MariaDB"
	}
	return dialect.String()
}

// version reads the version of the database and its place: on SQLite the path of the
// file, on PostgreSQL whether the server is a standby.
func (b *Backend) version(ctx context.Context) (version, place string, err error) {
	err = b.db.Read(ctx, "read the database's version", func(ctx context.Context, on sqldb.Querier) error {
		return sqldb.ForEach(ctx, on, b.sql(identifyQuery), func(rows *sql.Rows) error { return rows.Scan(&version, &place) })
	})
	return version, place, err
}

// checkDatabase returns an error for an unusable database.
func (b *Backend) checkDatabase(version, place string) error {
	name := productName(b.db.Dialect, version)
	if found := majorMinor(version); found[0] < minVersions[name][0] || found[0] == minVersions[name][0] && found[1] < minVersions[name][1] {
		return fmt.Errorf("%w: %s %s; at least %d.%d is needed",
			dberr.ErrServerTooOld, name, versionNumber(version), minVersions[name][0], minVersions[name][1])
	}
	switch {
	case b.db.Dialect == sqldb.PostgreSQL && place == "standby":
		return fmt.Errorf("%w: connect to the primary", dberr.ErrInRecovery)
	case b.db.Dialect == sqldb.SQLite && place == "" && b.db.Stats().MaxOpenConnections != 1:
		return fmt.Errorf("%w: an in-memory database is private to each connection: use a file", tenure.ErrRefused)
	}
	return nil
}

// ensureReady checks the database and its settings, and creates or checks the tables.
func (b *Backend) ensureReady(ctx context.Context) error {
	if err := checkSettings(b.readBadSettings(ctx)); err != nil {
		return err
	}
	if err := b.ensureTables(ctx); err != nil {
		return err
	}
	return checkSettings(b.readBadEngines(ctx))
}

func (b *Backend) ensureTables(ctx context.Context) error {
	version, place, err := b.version(ctx)
	if err != nil {
		return err
	}
	if err := b.checkDatabase(version, place); err != nil {
		return err
	}
	if err := b.db.CheckAutocommit(ctx); err != nil {
		return err
	}
	if !b.config.ManualMigrations {
		return b.Migrate(ctx)
	}
	present, err := b.SchemaVersion(ctx)
	switch {
	case err != nil:
		return err
	case present > schemaVersion:
		return newerSchema(present)
	case present < schemaVersion:
		return fmt.Errorf("%w: the tables with prefix %q have version %d; version %d is needed: call Migrate, or allow migrations",
			dberr.ErrSchema, b.config.Prefix, present, schemaVersion)
	}
	return b.damage(ctx, true)
}

var firstNumbers = regexp.MustCompile(`(\d+)\.(\d+)(\.\d+)*`)

// versionNumber returns the number in the long text of a version. MariaDB can put 5.5.5-
// before it, for old clients.
func versionNumber(version string) string {
	return firstNumbers.FindString(strings.TrimPrefix(version, "5.5.5-"))
}

// majorMinor returns the first two numbers of a version.
func majorMinor(version string) (found [2]int) {
	match := firstNumbers.FindStringSubmatch(versionNumber(version))
	for i := range found {
		if len(match) > i+1 {
			found[i], _ = strconv.Atoi(match[i+1]) // digits only
		}
	}
	return found
}

// MigrateDown removes the tables; version must be 0. If nodes are running, the error
// matches dberr.ErrInstallationInUse and lists them.
func (b *Backend) MigrateDown(ctx context.Context, version int) error {
	if version != 0 {
		return fmt.Errorf("%w: cannot migrate down to version %d, only to 0", tenure.ErrInvalidConfig, version)
	}
	present, err := b.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	if present > 0 {
		_ = b.correctLeases(ctx) // the refusal below reports what is wrong
	}
	return b.db.InTx(ctx, "remove the tables", func(ctx context.Context, on sqldb.Querier) error {
		if present > 0 {
			err := b.refuseLiveNodes(ctx, on)
			// On MySQL a crash can have interrupted an earlier removal. It begins with the
			// table of sessions.
			if err != nil && (b.db.Dialect != sqldb.MySQL || b.db.Dialect.FailureOf(err) != sqldb.FailureSchema) {
				return err
			}
		}
		if err := b.dropMode(ctx, on); err != nil {
			return err
		}
		for _, drop := range b.drops() {
			if err := sqldb.Exec(ctx, on, drop); err != nil {
				return err
			}
		}
		return nil
	})
}
