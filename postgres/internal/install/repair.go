package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres/internal/link"
	"github.com/exactly-one/tenure/postgres/internal/sqlstate"
)

// repairWait bounds the wait of a repair for a table.
const repairWait = 10 * time.Second

// maxRepairPasses bounds the repetitions of a repair: one part can need another one first.
const maxRepairPasses = 20

// MigrateRepair is the method of the backend with this name.
func (i *Installation) MigrateRepair(ctx context.Context, dryRun bool) (statements []string, err error) {
	conn, err := i.Connector.DialMigration(ctx)
	if err != nil {
		return nil, err
	}
	defer link.Discard(conn)
	unsure, err := i.claimForRepair(ctx, conn)
	if err != nil {
		return nil, err
	}
	defer i.Schema.Forget()
	var r *repair
	err = i.tryMigration(ctx, conn, repairWait, func(tx pgx.Tx) error {
		r = &repair{on: i, tx: tx, nodesUnknown: unsure}
		if err := r.run(ctx); err != nil {
			return err
		}
		if dryRun {
			return errDryRun
		}
		return nil
	})
	switch {
	case err == nil || errors.Is(err, errDryRun):
		return r.done, nil
	case sqlstate.Has(err, sqlstate.InsufficientPrivilege):
		return nil, fmt.Errorf("%w: repair as the owner of the tables or a superuser: %w", dberr.ErrPrivilege, err)
	case errors.Is(err, dberr.ErrSchema):
		return nil, err
	}
	return nil, i.Names.Explain("repair", err)
}

// claimForRepair acquires the installation's lock exclusively. Every live node prevents
// it. It also refuses lost nodes if they may still lead; unsure is whether the registry
// is too damaged to know them.
func (i *Installation) claimForRepair(ctx context.Context, conn *pgx.Conn) (unsure bool, err error) {
	for deadline := time.Now().Add(installationWait); ; {
		locked, err := i.tryLock(ctx, conn, tryInstallation)
		if err != nil {
			return false, err
		}
		if locked {
			err := i.refuseNodes(ctx, conn, "repair")
			return isDamage(err), ignoreDamage(err)
		}
		if time.Now().After(deadline) {
			err := i.inUse(ctx, conn, "repair", nil)
			if isDamage(err) {
				err = i.inUse(ctx, conn, "repair", []string{"sessions that hold its lock, see pg_locks"})
			}
			return false, err
		}
		if err := pauseForInstallation(ctx); err != nil {
			return false, err
		}
	}
}

// isDamage reports whether a statement failed because an object is missing or changed, or
// because row security hides rows: class 42 of SQLSTATE.
func isDamage(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && strings.HasPrefix(answer.Code, "42")
}

func ignoreDamage(err error) error {
	if isDamage(err) {
		return nil
	}
	return err
}

// errDryRun rolls back the transaction of a repair.
var errDryRun = errors.New("dry run")

// repair is a repair in a transaction.
type repair struct {
	on           *Installation
	tx           pgx.Tx
	done         []string // statements
	mended       []schema.Damage
	nodesUnknown bool // nodes without a row may still lead
	newID        bool // the installation has another id
}

func (r *repair) run(ctx context.Context) error {
	if err := r.refuseMissing(ctx); err != nil {
		return err
	}
	if err := r.mendParts(ctx, r.on.Core); err != nil {
		return err
	}
	versions, err := r.on.UsableVersions(ctx, r.tx)
	if err != nil {
		return err
	}
	present, err := r.mendFeatures(ctx, versions)
	if err != nil {
		return err
	}
	for _, f := range present {
		if err := r.finish(ctx, versions, f); err != nil {
			return err
		}
	}
	return r.mendRows(ctx, present)
}

// refuseMissing returns an error if the database has no tables of Tenure.
func (r *repair) refuseMissing(ctx context.Context) error {
	_, remain, err := r.on.Schema.Remains(ctx, r.tx, r.on.Core)
	if err != nil || remain {
		return err
	}
	versions, err := r.on.Schema.Versions(ctx, r.tx)
	if err != nil || versions[schema.Core].Present > 0 {
		return err
	}
	return fmt.Errorf("%w: there are no tables in schema %q with prefix %q to repair; a node creates them, or tenure migrate",
		dberr.ErrSchema, r.on.Names.Schema, r.on.Names.Prefix)
}

// mendFeatures mends the features with tables known to this program. It returns the core
// and these features.
func (r *repair) mendFeatures(ctx context.Context, versions schema.Versions) (present []*schema.Feature, err error) {
	present = []*schema.Feature{r.on.Core}
	for _, f := range schema.Registered() {
		_, remain, err := r.on.Schema.Remains(ctx, r.tx, f)
		if err != nil {
			return nil, err
		}
		if version := versions[f.Name].Present; version != 0 && version != f.Newest() || version == 0 && !remain {
			continue // a migration makes the rest, or a newer program knows how it must look
		}
		if err := r.mendParts(ctx, f); err != nil {
			return nil, err
		}
		present = append(present, f)
	}
	return present, nil
}

// finish repeats the comments of a feature and records its version.
func (r *repair) finish(ctx context.Context, versions schema.Versions, f *schema.Feature) error {
	if len(r.mended) > 0 {
		for _, statement := range r.on.Schema.Finishing(f) {
			if err := r.exec(ctx, false, statement); err != nil {
				return err
			}
		}
	}
	return r.recordVersion(ctx, versions, f)
}

// mendParts mends the parts of a feature, of one kind after the other, and looks at them
// again after each.
func (r *repair) mendParts(ctx context.Context, f *schema.Feature) error {
	for range maxRepairPasses {
		found, err := r.on.Schema.FindParts(ctx, r.tx, f)
		if err != nil {
			return err
		}
		damages := r.on.Schema.Damages(f, found[f.Name])
		if len(damages) == 0 {
			return nil
		}
		var last []string
		for _, d := range damages {
			if d.Kind != damages[0].Kind {
				break
			}
			statements := r.on.Schema.Mend(d)
			if len(statements) == 0 {
				return fmt.Errorf("no statement of this program mends it: %w", r.on.Schema.Refusal([]schema.Damage{d}))
			}
			if slices.Equal(statements, last) {
				continue
			}
			last = statements
			for _, statement := range statements {
				if err := r.exec(ctx, true, statement); err != nil {
					return err
				}
			}
			r.mended = append(r.mended, d)
		}
	}
	found, err := r.on.Schema.FindParts(ctx, r.tx, f)
	if err != nil {
		return err
	}
	return r.on.Schema.Refusal(r.on.Schema.Damages(f, found[f.Name]))
}

// exec runs a statement, and records it if it is said to or changed a row.
func (r *repair) exec(ctx context.Context, always bool, sql string) error {
	tag, err := r.tx.Exec(ctx, sql)
	if err != nil {
		return fmt.Errorf("%s: %w", firstLine(sql), err)
	}
	if always || tag.RowsAffected() > 0 {
		r.done = append(r.done, strings.TrimSpace(sql))
	}
	return nil
}

func firstLine(sql string) string {
	line, _, more := strings.Cut(strings.TrimSpace(sql), "\n")
	if more {
		line += " …"
	}
	return line
}

// recordVersion records the version of a feature with remaining tables.
func (r *repair) recordVersion(ctx context.Context, versions schema.Versions, f *schema.Feature) error {
	present := versions[f.Name].Present
	if present > f.Newest() {
		return nil
	}
	for i, step := range f.Steps {
		table, feature, digest := r.on.Names.SQL("{migrations}"), schema.Literal(f.Name), schema.Literal(step.Digest())
		sql := fmt.Sprintf("INSERT INTO %s (feature, version, usable_from, digest) VALUES (%s, %d, nullif(%d, 0), %s);", table, feature, i+1, step.UsableFrom, digest)
		if present > 0 { // another build may have made the tables mended by this one
			sql = fmt.Sprintf("UPDATE %s SET digest = %[4]s WHERE feature = %[2]s AND version = %[3]d AND digest IS DISTINCT FROM %[4]s;", table, feature, i+1, digest)
			if err := r.exec(ctx, false, sql); err != nil {
				return err
			}
			continue
		}
		if err := r.exec(ctx, true, sql); err != nil {
			return err
		}
	}
	return nil
}

// lost reports whether the repair made a missing part of the core.
func (r *repair) lost(kind, object string) bool {
	return slices.ContainsFunc(r.mended, func(d schema.Damage) bool {
		return d.Feature == r.on.Core && d.Kind == kind && d.Object == object && d.Found == ""
	})
}
