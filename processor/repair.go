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

// repairTimeout limits a repair without an earlier deadline.
const repairTimeout = time.Hour

// RepairResult is the result of a repair.
type RepairResult struct {
	Table      string   // the log's table
	Events     int64    // number of events with new transaction ids
	Processors []string // processors whose cursors were converted; none if nothing was wrong
}

// Repair converts the log of a processor, and the cursors of all processors on it, to this
// database cluster after a restore from another one; see [ErrForeignLog]. In one
// transaction, it gives the events transaction ids of this cluster in the same order, and
// converts the cursors and dead letters: exactly the unhandled events remain. Positions do
// not change. Events appended after the restore follow the restored ones.
//
// Stop all writers of the log first. The database user must own the log's
// table, or have UPDATE on it in addition to the privileges of
// [postgres.Backend.WorkGrants]. A repair takes at most an hour, or less by its
// context, and rewrites the table; run VACUUM afterwards.
//
// If the log's table is not known, the error matches tenure.ErrInvalidConfig and has the
// statements to run; see [Log].
func (m *Admin) Repair(ctx context.Context, name, by string) (RepairResult, error) {
	if strings.TrimSpace(by) == "" {
		return RepairResult{}, invalid("a change must name its requester")
	}
	if _, err := m.Show(ctx, name); err != nil {
		return RepairResult{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, repairTimeout)
	defer cancel()
	r := repair{admin: m, name: name, by: by}
	for range 2 {
		err := pgx.BeginTxFunc(ctx, m.database, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error { return r.run(ctx, tx) })
		var scarce *missingIDsError
		switch {
		case err == nil:
			return r.done, nil
		case !errors.As(err, &scarce):
			return RepairResult{}, r.explain(err)
		}
		// Events can only get transaction ids already assigned before.
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

// missingIDsError is returned if the log needs more transaction ids than this
// cluster has assigned.
type missingIDsError struct{ missing int64 }

func (e *missingIDsError) Error() string {
	return fmt.Sprintf("%d transaction ids are missing", e.missing)
}

// repair is the repair of one log.
type repair struct {
	admin    *Admin
	name, by string

	table, transaction, position string // quoted
	on                           []string
	done                         RepairResult
}

// run performs the repair in a transaction.
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
		return &missingIDsError{p.missing}
	}
	return r.renumber(ctx, tx, p)
}

// plan says how events get their transaction ids.
type plan struct {
	next    int64 // the id of the next transaction
	keep    bool  // keep the ids: they are valid in this cluster
	base    int64 // otherwise, the new id is this plus the number of the event's run
	missing int64 // this many more ids must be assigned first
	shift   int64 // offset of ids while events change places
}

// lock finds the log's table and locks out writers.
func (r *repair) lock(ctx context.Context, tx pgx.Tx) error {
	var log string
	var table, columns []string
	err := tx.QueryRow(ctx, r.admin.tables.SQL(findLog), r.name).Scan(&log, &table, &columns)
	if err != nil {
		return err
	}
	if len(table) == 0 || len(columns) != 2 {
		return r.admin.unknownTable(r.name, log)
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

// unknownTable returns the error for a log without a known table.
func (m *Admin) unknownTable(name, log string) error {
	return invalid("the processor %s reads the log %q, whose table is not known: set Log.Table in its program, or run, with the names of the table, "+
		"of its column with the transaction id, and of that with the position: %s; and repair again",
		name, log, m.tables.SQL("UPDATE {processors} SET log_table = '{SCHEMA,TABLE}', log_columns = '{XID,ID}' WHERE name = ")+quoteLiteral(name))
}

// examine finds the processors on the log, and whether they or the log need a
// repair.
func (r *repair) examine(ctx context.Context, tx pgx.Tx) (wrong bool, err error) {
	rows, err := tx.Query(ctx, r.admin.tables.SQL(findProcessors), r.table)
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
			err = r.admin.unknownTable(f.name, f.log) // its cursor could be on this table
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
	tables := r.admin.tables
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

// sql inserts the log's table and columns into a statement.
func (r *repair) sql(template string) string {
	return fmt.Sprintf(template, r.table, r.transaction, r.position)
}

// explain adds a remedy to an error.
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

// quoteLiteral quotes a text for a statement shown to operators.
func quoteLiteral(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
