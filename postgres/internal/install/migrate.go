package install

import (
	"cmp"
	"context"
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

const (
	createSchema   = `CREATE SCHEMA IF NOT EXISTS {schema}`
	schemaExists   = `SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1)`
	lockMigrations = `SELECT pg_catalog.pg_advisory_xact_lock($1)`
)

// Migrate is the method of the backend with this name.
func (i *Installation) Migrate(ctx context.Context, features ...string) error {
	found, err := findFeatures(features)
	if err != nil {
		return err
	}
	return i.MigrateFeatures(ctx, found...)
}

func findFeatures(names []string) ([]*schema.Feature, error) {
	found, err := schema.Find(names...)
	if err != nil {
		return nil, invalidParameter("%v", err)
	}
	return found, nil
}

// MigrateFeatures brings the core and features up to date.
func (i *Installation) MigrateFeatures(ctx context.Context, features ...*schema.Feature) error {
	conn, err := i.Connector.DialMigration(ctx)
	if err != nil {
		return err
	}
	defer link.Discard(conn)
	if _, err := i.Enter(ctx, conn, i.MigrateCore, nil); err != nil {
		return err
	}
	versions, err := i.Schema.Versions(ctx, conn)
	if err != nil {
		return err
	}
	var older, foreign []*schema.Feature
	for _, f := range append([]*schema.Feature{i.Core}, withRequired(features)...) {
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
		err = i.inMigration(ctx, conn, func(tx pgx.Tx) error { return i.Schema.Up(ctx, tx, older...) })
	}
	if err != nil || len(foreign) == 0 {
		return err
	}
	if err := pgdial.Apply(ctx, conn, pgdial.Question, link.LimitsOf(pgdial.Question)); err != nil {
		return err
	}
	return i.Schema.CheckParts(ctx, conn, versions, foreign...)
}

// withRequired returns features, each after its requirements.
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

// MigrateDown is the method of the backend with this name.
func (i *Installation) MigrateDown(ctx context.Context, feature string, version int) error {
	features, err := i.undone(feature, version)
	if err != nil {
		return err
	}
	conn, err := i.Connector.DialMigration(ctx)
	if err != nil {
		return err
	}
	defer link.Discard(conn)
	needed, err := i.needsDown(ctx, conn, features, version)
	if err != nil || !needed {
		return err
	}
	if err := i.claimInstallation(ctx, conn, "migrate down"); err != nil {
		return err
	}
	defer i.Schema.Forget()
	return i.inMigration(ctx, conn, func(tx pgx.Tx) error {
		if _, err := i.needsDown(ctx, tx, features, version); err != nil {
			return err
		}
		for _, f := range features {
			if err := i.Schema.Down(ctx, tx, f, version); err != nil {
				return err
			}
		}
		if version > 0 || features[len(features)-1] != i.Core {
			return nil
		}
		_, err := tx.Exec(ctx, i.Names.SQL(schema.DropVersions))
		return err
	})
}

// undone returns the features to undo, in this order.
func (i *Installation) undone(feature string, version int) ([]*schema.Feature, error) {
	var features []*schema.Feature
	switch {
	case feature == schema.All && version != 0:
		return nil, invalidParameter("all features together can go down to version 0 only")
	case (feature == schema.Core || feature == schema.All) && version == 0:
		features = schema.Registered()
		slices.Reverse(features)
		features = append(features, i.Core)
	case feature == schema.Core:
		features = []*schema.Feature{i.Core}
	default:
		found, err := findFeatures([]string{feature})
		if err != nil {
			return nil, err
		}
		features = found[len(found)-1:]
	}
	if newest := features[len(features)-1].Newest(); version < 0 || version > newest {
		return nil, invalidParameter("the version is %d; it must be between 0 and %d", version, newest)
	}
	return features, nil
}

// needsDown reports whether some of the features have a later version. It refuses
// versions this program cannot undo.
func (i *Installation) needsDown(ctx context.Context, q link.Querier, features []*schema.Feature, version int) (needed bool, err error) {
	versions, err := i.Schema.Versions(ctx, q)
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
	if unknown := versions.Unknown(); len(unknown) > 0 && version == 0 && slices.Contains(features, i.Core) {
		return false, fmt.Errorf("%w: this program does not know the features %s: use one that has them", dberr.ErrSchema, strings.Join(unknown, ", "))
	}
	return needed, nil
}

// FeatureVersion is the type of package postgres with this name.
type FeatureVersion struct {
	Feature string
	Version int // in the database; 0 if it has no tables
	Newest  int // of this program; 0 if it does not know the feature
	// OtherBuild is whether another build of the program made the tables, from other
	// migrations with the same numbers.
	OtherBuild bool
}

// SchemaVersions is the method of the backend with this name.
func (i *Installation) SchemaVersions(ctx context.Context) ([]FeatureVersion, error) {
	conn, err := i.Connector.DialMigration(ctx)
	if err != nil {
		return nil, err
	}
	defer link.Discard(conn)
	versions, err := i.Schema.Versions(ctx, conn)
	if err != nil {
		return nil, err
	}
	all := []FeatureVersion{versionOf(versions, i.Core)}
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

// SchemaVersion is the method of the backend with this name.
func (i *Installation) SchemaVersion(ctx context.Context) (int, error) {
	conn, err := i.Connector.DialMigration(ctx)
	if err != nil {
		return 0, err
	}
	defer link.Discard(conn)
	return i.ReadVersion(ctx, conn)
}

// MigrationSQL is the method of the backend with this name.
func (i *Installation) MigrationSQL(features ...string) (string, error) {
	found, err := findFeatures(features)
	if err != nil {
		return "", err
	}
	var script strings.Builder
	script.WriteString("BEGIN;\n\n")
	if len(features) == 0 || slices.Contains(features, schema.Core) || slices.Contains(features, schema.All) {
		script.WriteString(i.ClaimSQL("pg_try_advisory_xact_lock") + "\n\n" + createSchema + ";\n" + schema.CreateVersions + ";\n\n" + i.Core.Script(false) + "\n")
	} else {
		script.WriteString(i.ClaimSQL("pg_try_advisory_xact_lock_shared") + "\n\n")
	}
	for _, f := range found {
		script.WriteString(f.Script(true) + "\n")
	}
	script.WriteString("COMMIT;\n")
	return i.Names.SQL(script.String()), nil
}

// ClaimSQL acquires the installation's lock in the script.
func (i *Installation) ClaimSQL(function string) string {
	first, second := installation.LockKey(i.Names.Schema, i.Names.Prefix)
	return fmt.Sprintf(`DO %[1]s
BEGIN
    IF NOT pg_catalog.%[4]s(%[2]d, %[3]d) THEN
        RAISE EXCEPTION 'nodes still live under this installation: end them first';
    END IF;
END
%[1]s;`, schema.FunctionQuote, first, second, function)
}

// MigrationTimeout bounds a migration by the opening of a session, and the wait for a
// migration by another node.
const MigrationTimeout = time.Hour

// Migrator brings the schema up to date.
type Migrator func(context.Context, *pgx.Conn) error

// MigrateCore brings the schema up to date on a connection with the lock of the
// installation: exclusively to create it, else shared.
func (i *Installation) MigrateCore(ctx context.Context, conn *pgx.Conn) error {
	return i.inMigration(ctx, conn, func(tx pgx.Tx) error { return i.createCore(ctx, tx) })
}

// createCore creates the schema and the tables of the core, or brings them up to date.
func (i *Installation) createCore(ctx context.Context, tx pgx.Tx) error {
	var exists bool
	if err := tx.QueryRow(ctx, schemaExists, i.Names.Schema).Scan(&exists); err != nil {
		return err
	}
	if !exists { // IF NOT EXISTS alone needs the privilege to create
		if _, err := tx.Exec(ctx, i.Names.SQL(createSchema)); err != nil {
			return err
		}
	}
	return i.Schema.Up(ctx, tx, i.Core)
}

var errRehearsed = errors.New("the migration was rehearsed")

// RehearseMigration creates the tables of the core and rolls back. It returns the error
// of the first node to open.
func (i *Installation) RehearseMigration(ctx context.Context, conn *pgx.Conn) error {
	err := i.tryMigration(ctx, conn, firstTableWait, func(tx pgx.Tx) error {
		return cmp.Or(i.createCore(ctx, tx), errRehearsed)
	})
	if errors.Is(err, errRehearsed) {
		return nil
	}
	return i.migrationFailed(err)
}

// ReadVersion reads the version of the core, 0 if there is none.
func (i *Installation) ReadVersion(ctx context.Context, q link.Querier) (int, error) {
	versions, err := i.Schema.Versions(ctx, q)
	return versions[schema.Core].Present, err
}

// UsableVersions reads the versions of all features. It refuses a core newer than this
// program, unless the core's migrations allow the program to use it.
func (i *Installation) UsableVersions(ctx context.Context, q link.Querier) (schema.Versions, error) {
	versions, err := i.Schema.Versions(ctx, q)
	if err != nil {
		return nil, err
	}
	return versions, versions[schema.Core].Usable(i.Core)
}

// RefuseNewer returns an error if the schema is newer than this program and must not be used
// by it: its tables may have another meaning, so nothing is read or written.
func (i *Installation) RefuseNewer(ctx context.Context, conn *pgx.Conn) error {
	_, err := i.UsableVersions(ctx, conn)
	return err
}
