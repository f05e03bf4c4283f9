package postgres

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

// MigrateRepair mends what differs from what the migrations made: missing or changed tables,
// columns, indexes, triggers, functions, rows and positions of sequences. It returns the
// statements that it ran. With dryRun it undoes them again. Numbers of later terms are greater
// than all that the database still has. No node may be running: an error that matches
// dberr.ErrInstallationInUse lists the running nodes. An error matches dberr.ErrSchema if
// there are no tables, or if only an operator can mend them.
func (b *Backend) MigrateRepair(ctx context.Context, dryRun bool) (statements []string, err error) {
	conn, err := b.connect.DialMigration(ctx)
	if err != nil {
		return nil, err
	}
	defer link.Discard(conn)
	unsure, err := b.claimForRepair(ctx, conn)
	if err != nil {
		return nil, err
	}
	defer b.schema.Forget()
	var r *repair
	err = b.tryMigration(ctx, conn, repairWait, func(tx pgx.Tx) error {
		r = &repair{b: b, tx: tx, nodesUnknown: unsure}
		if err := r.run(ctx); err != nil {
			return err
		}
		if dryRun {
			return errTakenBack
		}
		return nil
	})
	switch {
	case err == nil || errors.Is(err, errTakenBack):
		return r.done, nil
	case sqlstate.Has(err, sqlstate.InsufficientPrivilege):
		return nil, fmt.Errorf("%w: repair as the owner of the tables or a superuser: %w", dberr.ErrPrivilege, err)
	case errors.Is(err, dberr.ErrSchema):
		return nil, err
	}
	return nil, b.names.Explain("repair", err)
}

// claimForRepair acquires the installation's lock exclusively, which no live node lets it
// have. It also refuses lost nodes that may still lead; unsure is whether the registry is too
// damaged to know them.
func (b *Backend) claimForRepair(ctx context.Context, conn *pgx.Conn) (unsure bool, err error) {
	for deadline := time.Now().Add(installationWait); ; {
		locked, err := b.tryLock(ctx, conn, tryInstallation)
		if err != nil {
			return false, err
		}
		if locked {
			err := b.refuseNodes(ctx, conn, "repair")
			return isDamage(err), ignoreDamage(err)
		}
		if time.Now().After(deadline) {
			err := b.inUse(ctx, conn, "repair", nil)
			if isDamage(err) {
				err = b.inUse(ctx, conn, "repair", []string{"sessions that hold its lock, see pg_locks"})
			}
			return false, err
		}
		if err := pauseForInstallation(ctx); err != nil {
			return false, err
		}
	}
}

// isDamage reports whether a statement failed because an object that it names is missing or
// changed, or because row security hides rows: class 42 of SQLSTATE.
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

// repair is a repair in a transaction.
type repair struct {
	b            *Backend
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
	if err := r.mendParts(ctx, r.b.core); err != nil {
		return err
	}
	versions, err := r.b.usableVersions(ctx, r.tx)
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
	_, remain, err := r.b.schema.Remains(ctx, r.tx, r.b.core)
	if err != nil || remain {
		return err
	}
	versions, err := r.b.schema.Versions(ctx, r.tx)
	if err != nil || versions[schema.Core].Present > 0 {
		return err
	}
	return fmt.Errorf("%w: there are no tables in schema %q with prefix %q to repair; a node creates them, or tenure migrate",
		dberr.ErrSchema, r.b.config.Schema, r.b.config.Prefix)
}

// mendFeatures mends the features whose tables this program knows, and returns the core and
// these features.
func (r *repair) mendFeatures(ctx context.Context, versions schema.Versions) (present []*schema.Feature, err error) {
	present = []*schema.Feature{r.b.core}
	for _, f := range schema.Registered() {
		_, remain, err := r.b.schema.Remains(ctx, r.tx, f)
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
		for _, statement := range r.b.schema.Finishing(f) {
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
		found, err := r.b.schema.FindParts(ctx, r.tx, f)
		if err != nil {
			return err
		}
		damages := r.b.schema.Damages(f, found[f.Name])
		if len(damages) == 0 {
			return nil
		}
		var last []string
		for _, d := range damages {
			if d.Kind != damages[0].Kind {
				break
			}
			statements := r.b.schema.Mend(d)
			if len(statements) == 0 {
				return fmt.Errorf("no statement of this program mends it: %w", r.b.schema.Refusal([]schema.Damage{d}))
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
	found, err := r.b.schema.FindParts(ctx, r.tx, f)
	if err != nil {
		return err
	}
	return r.b.schema.Refusal(r.b.schema.Damages(f, found[f.Name]))
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

// recordVersion records the version of a feature whose tables remain.
func (r *repair) recordVersion(ctx context.Context, versions schema.Versions, f *schema.Feature) error {
	present := versions[f.Name].Present
	if present > f.Newest() {
		return nil
	}
	if err := r.exec(ctx, false, r.b.names.SQL(schema.AddDigest)); err != nil {
		return err
	}
	for i, step := range f.Steps {
		table, feature, digest := r.b.names.SQL("{migrations}"), schema.Literal(f.Name), schema.Literal(step.Digest())
		sql := fmt.Sprintf("INSERT INTO %s (feature, version, usable_from, digest) VALUES (%s, %d, nullif(%d, 0), %s);", table, feature, i+1, step.UsableFrom, digest)
		if present > 0 { // another build may have made what this one has mended
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

// lost reports whether the repair made a part of the core that was missing.
func (r *repair) lost(kind, object string) bool {
	return slices.ContainsFunc(r.mended, func(d schema.Damage) bool {
		return d.Feature == r.b.core && d.Kind == kind && d.Object == object && d.Found == ""
	})
}
