package postgres

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/installation"
	"github.com/exactly-one/tenure/internal/pgdial"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres/internal/link"
)

//go:embed migrations/*.sql migrations/parts.tsv
var migrations embed.FS

// core are the tables of elections and of the cluster.
var core = &schema.Feature{Name: schema.Core, Steps: schema.Steps(migrations, "migrations"), Parts: schema.Parts(migrations, "migrations")}

const (
	createSchema   = `CREATE SCHEMA IF NOT EXISTS {schema}`
	schemaExists   = `SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1)`
	lockMigrations = `SELECT pg_catalog.pg_advisory_xact_lock($1)`
)

// Migrate creates the schema, or brings an older one up to date: the tables of
// elections and of the cluster, which every node needs, and those of the named
// features and the features that they require. Unless [Config.ManualMigrations] is
// set, a node creates the former, and the first use of a feature creates the
// feature's tables. The name "all" means all features of this program: a feature is
// a package, such as cron for "schedules", and tenure migrate status lists them.
//
// If all tables are current, Migrate does nothing, so any user may call it then.
// Any number of processes may call it at the same time: one works, the others wait.
// An error matches dberr.ErrSchema if the schema is newer and this package may not
// use it, dberr.ErrPrivilege if the user may not create it, dberr.ErrWrongMode if
// the installation elects by leases, dberr.ErrInstallationInUse if the schema was
// removed while nodes are still running, and tenure.ErrInvalidConfig for a name
// that no feature has. If ctx ends, nothing is changed.
func (b *Backend) Migrate(ctx context.Context, features ...string) error {
	found, err := findFeatures(features)
	if err != nil {
		return err
	}
	return b.migrateFeatures(ctx, found...)
}

func findFeatures(names []string) ([]*schema.Feature, error) {
	found, err := schema.Find(names...)
	if err != nil {
		return nil, invalid("%v", err)
	}
	return found, nil
}

// migrateFeatures brings the core and features up to date.
func (b *Backend) migrateFeatures(ctx context.Context, features ...*schema.Feature) error {
	conn, err := b.connect.DialMigration(ctx)
	if err != nil {
		return err
	}
	defer link.Discard(conn)
	if _, err := b.enterInstallation(ctx, conn, b.migrate, nil); err != nil {
		return err
	}
	versions, err := b.schema.Versions(ctx, conn)
	if err != nil {
		return err
	}
	var older, foreign []*schema.Feature
	for _, f := range append([]*schema.Feature{b.core}, withRequired(features)...) {
		version := versions[f.Name]
		if err := version.Usable(f); err != nil {
			return err
		}
		switch {
		case version.Present < f.Newest():
			older = append(older, f)
		case version.Another(f):
			foreign = append(foreign, f)
		}
	}
	if len(older) > 0 {
		err = b.inMigration(ctx, conn, func(tx pgx.Tx) error { return b.schema.Up(ctx, tx, older...) })
	}
	if err != nil || len(foreign) == 0 {
		return err
	}
	if err := pgdial.Apply(ctx, conn, pgdial.Question, link.LimitsOf(pgdial.Question)); err != nil {
		return err
	}
	return b.schema.CheckParts(ctx, conn, versions, foreign...)
}

// withRequired returns features, each after those that it requires.
func withRequired(features []*schema.Feature) []*schema.Feature {
	var all []*schema.Feature
	for _, f := range features {
		for _, other := range append(withRequired(f.Requires), f) {
			if !slices.Contains(all, other) {
				all = append(all, other)
			}
		}
	}
	return all
}

// MigrateDown undoes migrations of a feature until it has the given version; 0
// removes its tables. The feature "core" at version 0 means all tables of all
// features, and so does "all". No node may be running: an error that matches
// dberr.ErrInstallationInUse lists the running nodes. An error matches
// tenure.ErrInvalidConfig if the feature has no such version, or if another feature
// needs it.
func (b *Backend) MigrateDown(ctx context.Context, feature string, version int) error {
	features, err := b.undone(feature, version)
	if err != nil {
		return err
	}
	conn, err := b.connect.DialMigration(ctx)
	if err != nil {
		return err
	}
	defer link.Discard(conn)
	needed, err := b.needsDown(ctx, conn, features, version)
	if err != nil || !needed {
		return err
	}
	if err := b.claimInstallation(ctx, conn, "migrate down"); err != nil {
		return err
	}
	defer b.schema.Forget()
	return b.inMigration(ctx, conn, func(tx pgx.Tx) error {
		if _, err := b.needsDown(ctx, tx, features, version); err != nil {
			return err
		}
		for _, f := range features {
			if err := b.schema.Down(ctx, tx, f, version); err != nil {
				return err
			}
		}
		if version > 0 || features[len(features)-1] != b.core {
			return nil
		}
		_, err := tx.Exec(ctx, b.names.SQL(schema.DropVersions))
		return err
	})
}

// undone returns the features to be undone, in that order.
func (b *Backend) undone(feature string, version int) ([]*schema.Feature, error) {
	var features []*schema.Feature
	switch {
	case feature == schema.All && version != 0:
		return nil, invalid("all features together can go down to version 0 only")
	case (feature == schema.Core || feature == schema.All) && version == 0:
		features = schema.Registered()
		slices.Reverse(features)
		features = append(features, b.core)
	case feature == schema.Core:
		features = []*schema.Feature{b.core}
	default:
		found, err := findFeatures([]string{feature})
		if err != nil {
			return nil, err
		}
		features = found[len(found)-1:]
	}
	if newest := features[len(features)-1].Newest(); version < 0 || version > newest {
		return nil, invalid("the version is %d; it must be between 0 and %d", version, newest)
	}
	return features, nil
}

// needsDown reports whether some of the features have a later version, and
// refuses what this program does not know how to undo.
func (b *Backend) needsDown(ctx context.Context, q link.Querier, features []*schema.Feature, version int) (needed bool, err error) {
	versions, err := b.schema.Versions(ctx, q)
	if err != nil {
		return false, err
	}
	for _, f := range features {
		present := versions[f.Name]
		if present.Present > f.Newest() {
			return false, present.TooNew(f)
		}
		needed = needed || present.Present > version
	}
	if unknown := versions.Unknown(); len(unknown) > 0 && version == 0 && slices.Contains(features, b.core) {
		return false, fmt.Errorf("%w: this program does not know the features %s: use one that has them", dberr.ErrSchema, strings.Join(unknown, ", "))
	}
	return needed, nil
}

// FeatureVersion is the version of a feature's tables.
type FeatureVersion struct {
	Feature string
	Version int // in the database; 0 if it has no tables
	Newest  int // of this program; 0 if it does not know the feature
	// OtherBuild is whether another build of the program made the tables, from other
	// migrations with the same numbers.
	OtherBuild bool
}

// SchemaVersions reads the versions of all features: the core, then the features
// of this program, then others.
func (b *Backend) SchemaVersions(ctx context.Context) ([]FeatureVersion, error) {
	conn, err := b.connect.DialMigration(ctx)
	if err != nil {
		return nil, err
	}
	defer link.Discard(conn)
	versions, err := b.schema.Versions(ctx, conn)
	if err != nil {
		return nil, err
	}
	all := []FeatureVersion{versionOf(versions, b.core)}
	for _, f := range schema.Registered() {
		all = append(all, versionOf(versions, f))
	}
	for _, name := range versions.Unknown() {
		all = append(all, FeatureVersion{Feature: name, Version: versions[name].Present})
	}
	return all, nil
}

func versionOf(versions schema.Versions, f *schema.Feature) FeatureVersion {
	version := versions[f.Name]
	return FeatureVersion{f.Name, version.Present, f.Newest(), version.Another(f)}
}

// SchemaVersion reads the version of the tables of elections and of the cluster;
// 0 if there are none.
func (b *Backend) SchemaVersion(ctx context.Context) (int, error) {
	conn, err := b.connect.DialMigration(ctx)
	if err != nil {
		return 0, err
	}
	defer link.Discard(conn)
	return b.readVersion(ctx, conn)
}

// MigrationSQL returns a script for operators who apply changes with their own
// tools. Without names it creates the tables of elections and of the cluster in a
// database that has none. With names of features it creates the tables of these
// features and of those that they require, unless they exist, and with "core" or
// "all" both. The error for a name that no feature has matches
// tenure.ErrInvalidConfig.
func (b *Backend) MigrationSQL(features ...string) (string, error) {
	found, err := findFeatures(features)
	if err != nil {
		return "", err
	}
	var script strings.Builder
	script.WriteString("BEGIN;\n\n")
	if len(features) == 0 || slices.Contains(features, schema.Core) || slices.Contains(features, schema.All) {
		script.WriteString(b.claimSQL("pg_try_advisory_xact_lock") + "\n\n" + createSchema + ";\n" + schema.CreateVersions + ";\n\n" + b.core.Script(false) + "\n")
	} else {
		script.WriteString(b.claimSQL("pg_try_advisory_xact_lock_shared") + "\n\n")
	}
	for _, f := range found {
		script.WriteString(f.Script(true) + "\n")
	}
	script.WriteString("COMMIT;\n")
	return b.names.SQL(script.String()), nil
}

// claimSQL is the statement with which the script acquires the installation's lock.
func (b *Backend) claimSQL(function string) string {
	first, second := installation.LockKey(b.config.Schema, b.config.Prefix)
	return fmt.Sprintf(`DO %[1]s
BEGIN
    IF NOT pg_catalog.%[4]s(%[2]d, %[3]d) THEN
        RAISE EXCEPTION 'nodes still live under this installation: end them first';
    END IF;
END
%[1]s;`, schema.FunctionQuote, first, second, function)
}

// migrationTimeout bounds a migration that opening a session makes necessary, and
// the wait for a migration of another node.
const migrationTimeout = time.Hour

// migrator brings the schema up to date.
type migrator func(context.Context, *pgx.Conn) error

// migrate brings the schema up to date on a connection that holds the lock of
// the installation: exclusively to create it, else shared.
func (b *Backend) migrate(ctx context.Context, conn *pgx.Conn) error {
	return b.inMigration(ctx, conn, func(tx pgx.Tx) error { return b.createCore(ctx, tx) })
}

// createCore creates the schema and the tables of the core, or brings them up to date.
func (b *Backend) createCore(ctx context.Context, tx pgx.Tx) error {
	var exists bool
	if err := tx.QueryRow(ctx, schemaExists, b.config.Schema).Scan(&exists); err != nil {
		return err
	}
	if !exists { // IF NOT EXISTS alone needs the privilege to create
		if _, err := tx.Exec(ctx, b.names.SQL(createSchema)); err != nil {
			return err
		}
	}
	return b.schema.Up(ctx, tx, b.core)
}

var errRehearsed = errors.New("the migration was rehearsed")

// rehearseMigration creates the tables of the core and rolls that back. It returns the
// error that the first node to open would get.
func (b *Backend) rehearseMigration(ctx context.Context, conn *pgx.Conn) error {
	err := b.tryMigration(ctx, conn, firstTableWait, func(tx pgx.Tx) error {
		return cmp.Or(b.createCore(ctx, tx), errRehearsed)
	})
	if errors.Is(err, errRehearsed) {
		return nil
	}
	return b.migrationFailed(err)
}

// readVersion reads the version of the core, 0 if there is none.
func (b *Backend) readVersion(ctx context.Context, q link.Querier) (int, error) {
	versions, err := b.schema.Versions(ctx, q)
	return versions[schema.Core].Present, err
}

// usableVersions reads the versions of all features and refuses a core that is newer than
// this program, unless its migrations say that the program may use it.
func (b *Backend) usableVersions(ctx context.Context, q link.Querier) (schema.Versions, error) {
	versions, err := b.schema.Versions(ctx, q)
	if err != nil {
		return nil, err
	}
	return versions, versions[schema.Core].Usable(b.core)
}
