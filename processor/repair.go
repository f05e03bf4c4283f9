package processor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
)

// repairTimeout bounds a repair whose context has no deadline, or a later one.
const repairTimeout = time.Hour

// RepairResult is what a repair has done.
type RepairResult struct {
	Table      string   // the table behind the log
	Events     int64    // that have other transaction ids now
	Processors []string // that have cursors of this database cluster now; none if nothing was wrong
}

// Repair makes the log of a processor, and the cursors of all processors on it,
// ones of this database cluster, after a restore from another one; see
// [ErrForeignLog]. In one transaction, it gives the events transaction ids of
// this cluster that keep their order, and moves the cursors and dead letters
// along: exactly the events that were not handled remain. Positions stay.
// Events that were appended since the restore come after the restored ones.
//
// Stop all that appends to the log before. The database's user must own the
// table of the log, or have UPDATE on it besides the privileges of
// [postgres.Backend.WorkGrants]. It is bounded by an hour, or sooner by its
// context, and rewrites the table: give VACUUM a chance afterwards.
//
// An error matches tenure.ErrInvalidConfig if the table of the log is not known,
// and says what to run; see [Log].
func (m *Admin) Repair(ctx context.Context, name, by string) (RepairResult, error) {
	if strings.TrimSpace(by) == "" {
		return RepairResult{}, invalid("a change must say who makes it")
	}
	if _, err := m.Show(ctx, name); err != nil {
		return RepairResult{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, repairTimeout)
	defer cancel()
	r := repair{management: m, name: name, by: by}
	for range 2 {
		err := pgx.BeginTxFunc(ctx, m.database, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error { return r.run(ctx, tx) })
		var scarce *scarceError
		switch {
		case err == nil:
			return r.done, nil
		case !errors.As(err, &scarce):
			return RepairResult{}, r.explain(err)
		}
		// Ids that nobody has had cannot be given to events.
		if _, err := m.database.Exec(ctx, fmt.Sprintf(consumeIDs, scarce.missing)); err != nil {
			return RepairResult{}, fmt.Errorf("repair %s: using up transaction ids: %w", name, err)
		}
	}
	horizon, err := m.Horizon(ctx)
	if err != nil {
		return RepairResult{}, err
	}
	for _, holder := range horizon.Holders {
		return RepairResult{}, fmt.Errorf("%w: repair %s: an old transaction is in the way, end it and repair again: %v", tenure.ErrRefused, name, holder)
	}
	return RepairResult{}, fmt.Errorf("%w: repair %s: old transactions were in the way: repair again", tenure.ErrRefused, name)
}

// scarceError says that the log needs more transaction ids than this cluster has
// given out.
type scarceError struct{ missing int64 }

func (e *scarceError) Error() string {
	return fmt.Sprintf("%d transaction ids are missing", e.missing)
}

// repair is a repair of the log of one processor.
type repair struct {
	management *Admin
	name, by   string

	table, transaction, position string // quoted
	on                           []string
	done                         RepairResult
}

// run does the repair in a transaction.
func (r *repair) run(ctx context.Context, tx pgx.Tx) error {
	r.done = RepairResult{}
	if err := r.lock(ctx, tx); err != nil {
		return err
	}
	wrong, err := r.examine(ctx, tx)
	if err != nil || !wrong {
		return err
	}
	if _, err := tx.Exec(ctx, r.sql(orderEvents)); err != nil {
		return err
	}
	var p plan
	if _, err := tx.Exec(ctx, analyzeEvents); err != nil {
		return err
	}
	err = tx.QueryRow(ctx, planRepair, repairShift).Scan(&p.next, &p.keep, &p.base, &p.missing, &p.shift)
	if err != nil {
		return err
	}
	if p.missing > 0 {
		return &scarceError{p.missing}
	}
	return r.renumber(ctx, tx, p)
}

// plan says how events get their transaction ids.
type plan struct {
	next    int64 // the id of the next transaction
	keep    bool  // the ids are fit for use as they are
	base    int64 // otherwise, the number of an event's run is added to this
	missing int64 // so many more ids must have been given out first
	shift   int64 // ids are set off by this while events pass each other
}

// lock finds the table of the log and keeps writers out.
func (r *repair) lock(ctx context.Context, tx pgx.Tx) error {
	var log string
	var table, columns []string
	err := tx.QueryRow(ctx, r.management.tables.SQL(findLog), r.name).Scan(&log, &table, &columns)
	if err != nil {
		return err
	}
	if len(table) == 0 || len(columns) != 2 {
		return r.management.unknownTable(r.name, log)
	}
	r.table = pgx.Identifier(table).Sanitize()
	r.transaction, r.position = pgx.Identifier{columns[0]}.Sanitize(), pgx.Identifier{columns[1]}.Sanitize()
	r.done.Table = strings.Join(table, ".")
	if _, err := tx.Exec(ctx, boundLock); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, r.sql(lockLog))
	return err
}

// unknownTable says how to name the table behind a log.
func (m *Admin) unknownTable(name, log string) error {
	return invalid("the processor %s reads the log %q, whose table is not known: set Log.Table in its program, or run, with the names of the table, "+
		"of its column with the transaction id, and of that with the position: %s; and repair again",
		name, log, m.tables.SQL("UPDATE {processors} SET log_table = '{SCHEMA,TABLE}', log_columns = '{XID,ID}' WHERE name = ")+quoteLiteral(name))
}

// examine finds the processors on the log, and whether anything is wrong with
// them or it.
func (r *repair) examine(ctx context.Context, tx pgx.Tx) (wrong bool, err error) {
	rows, err := tx.Query(ctx, r.management.tables.SQL(findProcessors), r.table)
	if err != nil {
		return false, err
	}
	type found struct {
		name, log   string
		on, foreign bool
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f found, err error) {
		var unknown bool
		err = row.Scan(&f.name, &f.log, &f.on, &unknown, &f.foreign)
		if err == nil && unknown && f.foreign {
			err = r.management.unknownTable(f.name, f.log) // its cursor could be on this table
		}
		return f, err
	})
	if err != nil {
		return false, err
	}
	r.on = nil
	for _, f := range all {
		if f.on {
			r.on = append(r.on, f.name)
			wrong = wrong || f.foreign
		}
	}
	if !wrong {
		err = tx.QueryRow(ctx, r.sql(findAhead)).Scan(&wrong)
	}
	return wrong, err
}

// renumber gives the events, dead letters and cursors their new ids.
func (r *repair) renumber(ctx context.Context, tx pgx.Tx, p plan) error {
	tables := r.management.tables
	if !p.keep {
		events, err := tx.Exec(ctx, r.sql(renumberEvents), p.base, p.shift)
		if err != nil {
			return err
		}
		r.done.Events = events.RowsAffected()
		if _, err := tx.Exec(ctx, tables.SQL(renumberDeadLetters), r.on, p.base, p.shift); err != nil {
			return err
		}
		if p.shift > 0 {
			if _, err := tx.Exec(ctx, r.sql(shiftEvents), p.shift); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, tables.SQL(shiftDeadLetters), r.on, p.shift); err != nil {
				return err
			}
		}
	}
	if _, err := tx.Exec(ctx, tables.SQL(moveCursors), r.on, p.keep, p.base, p.next); err != nil {
		return err
	}
	detail := fmt.Sprintf("table %s, events renumbered: %d", r.done.Table, r.done.Events)
	for _, name := range r.on {
		if _, err := tx.Exec(ctx, tables.SQL(recordChange), r.by, name, "repair", detail, tables.Channel("")); err != nil {
			return err
		}
	}
	r.done.Processors = r.on
	return nil
}

// sql names the table and columns of the log in a statement.
func (r *repair) sql(template string) string {
	return fmt.Sprintf(template, r.table, r.transaction, r.position)
}

// explain says what to do about an error.
func (r *repair) explain(err error) error {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		switch answer.Code {
		case "55P03": // lock_not_available
			return fmt.Errorf("%w: repair %s: %s is being written: stop all that appends to it, and repair again: %w",
				dberr.ErrBusy, r.name, r.done.Table, err)
		case "42501": // insufficient_privilege
			return fmt.Errorf("%w: repair %s: do it as a database user who owns %s: %w", dberr.ErrPrivilege, r.name, r.done.Table, err)
		}
	}
	return fmt.Errorf("repair %s: %w", r.name, err)
}

// quoteLiteral quotes a text as it stands in a statement for people.
func quoteLiteral(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
