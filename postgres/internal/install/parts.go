package install

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres/internal/link"
)

// CheckParts refuses a database if a part of the core differs from its migrations. It
// sends one statement if nothing is damaged. An election needs no other feature: the
// first use of a feature checks its tables, so openings do not pay for it.
func (i *Installation) CheckParts(ctx context.Context, conn link.Querier, versions schema.Versions) error {
	return i.Schema.CheckParts(ctx, conn, versions, i.Core)
}

// OfFeature returns the damages of a feature.
func OfFeature(damages []schema.Damage, f *schema.Feature) []schema.Damage {
	var of []schema.Damage
	for _, d := range damages {
		if d.Feature == f {
			of = append(of, d)
		}
	}
	return of
}

// RefuseRemains refuses a database with tables of the core and no record of their
// version, as after a dump without rows: no migration creates them again.
func (i *Installation) RefuseRemains(ctx context.Context, conn *pgx.Conn) error {
	damages, remain, err := i.Schema.Remains(ctx, conn, i.Core)
	if err != nil || !remain {
		return err
	}
	// A migration of another process may have committed in between.
	if version, err := i.ReadVersion(ctx, conn); err != nil || version > 0 {
		return err
	}
	if len(damages) > 0 {
		return i.Schema.Refusal(damages)
	}
	refusal := fmt.Errorf("%w: schema %q has tables of Tenure, and %s has no row of their version: end all nodes and run %s",
		dberr.ErrDamaged, i.Names.Schema, i.Names.SQL("{migrations}"), schema.RepairCommand)
	var rows bool
	if err := conn.QueryRow(ctx, i.Names.SQL(anyRow)).Scan(&rows); err != nil || rows || i.Manual {
		return refusal
	}
	return fmt.Errorf("%w: %w", ErrNoRows, refusal)
}

// ErrNoRows means that all tables are there and empty, as after a dump without rows.
// Nothing can be lost, so a node and tenure migrate repair the tables.
var ErrNoRows = errors.New("the tables have no rows")

const anyRow = `
SELECT EXISTS (SELECT FROM {migrations}) OR EXISTS (SELECT FROM {installation}) OR EXISTS (SELECT FROM {server})
    OR EXISTS (SELECT FROM {terms}) OR EXISTS (SELECT FROM {history}) OR EXISTS (SELECT FROM {nodes})
    OR EXISTS (SELECT FROM {node_history}) OR EXISTS (SELECT FROM {requests})`

// fillTables repairs tables without rows, unless another node does.
func (i *Installation) fillTables(ctx context.Context, conn *pgx.Conn) error {
	_, err := i.MigrateRepair(ctx, false)
	if errors.Is(err, dberr.ErrInstallationInUse) {
		if version, readErr := i.ReadVersion(ctx, conn); readErr != nil || version > 0 {
			return readErr
		}
	}
	return err
}

// MissingRow is the error for an installation without its row. Causes are a dump without
// rows, and a test that empties all tables.
func MissingRow(table string) error {
	return fmt.Errorf("%w: the row of %s is missing; no lock key can be derived without it: end all nodes and run %s",
		dberr.ErrDamaged, table, schema.RepairCommand)
}
