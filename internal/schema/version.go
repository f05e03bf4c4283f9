package schema

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/grantee"
)

// Statements on the table of versions. It has a row for each step taken.
const (
	CreateVersions = `
CREATE TABLE IF NOT EXISTS {migrations} (
    feature text NOT NULL,
    version integer NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    usable_from integer,
    digest text,
    PRIMARY KEY (feature, version)
)`
	RecordVersion = `INSERT INTO {migrations} (feature, version, usable_from, digest) VALUES ($1, $2, nullif($3, 0), $4)`
	ForgetVersion = `DELETE FROM {migrations} WHERE feature = $1 AND version = $2`
	DropVersions  = `DROP TABLE {migrations}`

	versionsExist = `SELECT pg_catalog.to_regclass($1) IS NOT NULL, ` + RowSecurity
	readVersions  = `
SELECT m.feature, m.version, coalesce(m.usable_from, m.version), coalesce(to_jsonb(m) ->> 'digest', '')
FROM {migrations} m
ORDER BY m.feature, m.version`
)

// Querier is a connection, a transaction or a pool.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Version is the version of a feature in a database.
type Version struct {
	Present    int // 0 if the feature has no tables
	usableFrom int // the oldest permitted program's

	digests map[int]string // of the steps taken, as recorded by the builds that took them
}

// Another reports whether another build of the program took a step known to this program,
// from another text.
func (v Version) Another(f *Feature) bool {
	for i, step := range f.Steps[:min(v.Present, f.Newest())] {
		if recorded := v.digests[i+1]; recorded != "" && recorded != step.Digest() {
			return true
		}
	}
	return false
}

// origin says who took the steps of a feature, if it was not this build.
func (v Version) origin(f *Feature) string {
	if !v.Another(f) {
		return ""
	}
	return fmt.Sprintf("another build of Tenure made its version %d of %s", v.Present, f.Name)
}

// refuseAnother returns an error matching dberr.ErrSchema if another build took a step and
// the parts cannot show whether this program may use the tables.
func (v Version) refuseAnother(f *Feature) error {
	if !v.Another(f) {
		return nil
	}
	return fmt.Errorf("%w: %s, which is not that of this program: run a build of that kind", dberr.ErrSchema, v.origin(f))
}

// Versions are the versions of all features in a database, by name. It is nil if the
// database has no table of versions.
type Versions map[string]Version

// Versions reads the versions of all features. In a transaction it must not fail,
// so it looks for the table first.
func (n Names) Versions(ctx context.Context, database Querier) (Versions, error) {
	exist, err := n.versionsExist(ctx, database)
	if err != nil || !exist {
		return nil, err
	}
	rows, _ := database.Query(ctx, n.SQL(readVersions)) // rows reports its error
	versions := Versions{}
	var (
		feature, digest     string
		version, usableFrom int
	)
	_, err = pgx.ForEachRow(rows, []any{&feature, &version, &usableFrom, &digest}, func() error {
		v := versions[feature]
		if v.digests == nil {
			v.digests = map[int]string{}
		}
		v.Present, v.usableFrom, v.digests[version] = version, max(v.usableFrom, usableFrom), digest
		versions[feature] = v
		return nil
	})
	if err != nil {
		return nil, explain(database, n.ExplainMissing(err, "migrations"), "SELECT ON TABLE "+n.SQL("{migrations}"))
	}
	return versions, nil
}

// VersionsQueries returns the statements of [Names.Versions] and their parameters.
func (n Names) VersionsQueries() (exist string, args []any, read string) {
	return versionsExist, []any{n.SQL("{migrations}")}, n.SQL(readVersions)
}

func (n Names) versionsExist(ctx context.Context, database Querier) (exist bool, err error) {
	rows, _ := database.Query(ctx, versionsExist, n.SQL("{migrations}")) // rows reports its error
	var hidden bool
	_, err = pgx.ForEachRow(rows, []any{&exist, &hidden}, func() error { return nil })
	if err != nil {
		return false, explain(database, err, "USAGE ON SCHEMA "+n.SQL("{schema}"))
	}
	return exist, n.RefuseRowSecurity(hidden, "migrations")
}

// ExplainMissing explains the failure of a statement for a missing column of a table. The
// error then matches dberr.ErrDamaged.
func (n Names) ExplainMissing(err error, table string) error {
	const undefinedColumn = "42703"
	var answer *pgconn.PgError
	if errors.As(err, &answer) && answer.Code == undefinedColumn {
		return fmt.Errorf("%w: schema %q: table %s%s lacks a column: end all nodes and run %s: %w",
			dberr.ErrDamaged, n.schema, n.prefix, table, RepairCommand, err)
	}
	return err
}

// explain names the missing privilege, if one is missing.
func explain(database Querier, err error, privilege string) error {
	const insufficientPrivilege = "42501"
	var answer *pgconn.PgError
	if errors.As(err, &answer) && answer.Code == insufficientPrivilege {
		return fmt.Errorf("%w: GRANT %s TO %s: %w", dberr.ErrPrivilege, privilege, grantee.Of(database), err)
	}
	return fmt.Errorf("read the schema's version: %w", err)
}

// Usable returns an error matching dberr.ErrSchema if the tables of a feature are newer
// than this program. It returns nil if the newer migrations permit the program and began
// as this program's do.
func (v Version) Usable(f *Feature) error {
	switch {
	case v.Present <= f.Newest():
		return nil
	case v.usableFrom <= f.Newest():
		return v.refuseAnother(f)
	}
	return v.TooNew(f)
}

// TooNew is the error for tables newer than this program.
func (v Version) TooNew(f *Feature) error {
	return fmt.Errorf("%w: %s has version %d and this program knows version %d: use a newer release of the program",
		dberr.ErrSchema, f.Name, v.Present, f.Newest())
}
