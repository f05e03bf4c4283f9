package assign_test

import (
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/exactly-one/tenure/assign"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// An assigner shares its pool with a program that adds rows and works on them with
// database/sql.
func TestRowsOfDatabaseSQLAreAssigned(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	pool := pgtest.Pool(t, w.Server.DSN()+"&search_path="+w.Schema)
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { _ = db.Close() })
	inTx := func(statements func(tx *sql.Tx) error) {
		t.Helper()
		tx, err := db.BeginTx(t.Context(), nil)
		if err == nil {
			err = statements(tx)
		}
		if err == nil {
			err = tx.Commit()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	exec := func(tx *sql.Tx, statement string, want int64, args ...any) error {
		result, err := tx.ExecContext(t.Context(), statement, args...)
		if err != nil {
			return err
		}
		rows, err := result.RowsAffected()
		if rows != want {
			t.Errorf("%s: %d rows, want %d", statement, rows, want)
		}
		return err
	}
	a := w.worker("a")
	assigner, err := assign.New(w.scheduler("leader"), pool, w.config())
	if err != nil {
		t.Fatal(err)
	}
	w.run(assigner)
	inTx(func(tx *sql.Tx) error { return exec(tx, `INSERT INTO jobs DEFAULT VALUES`, 1) })
	w.Await("the row is assigned", func() bool { return w.has(a) == 1 })

	var id, assignment int64
	const begin = `UPDATE jobs SET state = 'running' WHERE node_id = $1 AND state = 'assigned' RETURNING id, assignment`
	const finish = `UPDATE jobs SET state = 'done', node_id = NULL WHERE id = $1 AND assignment = $2 AND state = 'running'`
	const giveBack = `UPDATE jobs SET state = 'pending', node_id = NULL WHERE id = $1 AND assignment = $2 AND state = 'running'`
	if err := db.QueryRowContext(t.Context(), begin, a.ID().String()).Scan(&id, &assignment); err != nil {
		t.Fatal(err)
	}
	inTx(func(tx *sql.Tx) error { return exec(tx, giveBack, 1, id, assignment) })
	w.Await("the row is assigned again", func() bool { return w.count(`state = 'assigned'`) == 1 })
	stale := assignment
	if err := db.QueryRowContext(t.Context(), begin, a.ID().String()).Scan(&id, &assignment); err != nil {
		t.Fatal(err)
	}
	inTx(func(tx *sql.Tx) error { return exec(tx, finish, 0, id, stale) })
	inTx(func(tx *sql.Tx) error { return exec(tx, finish, 1, id, assignment) })
}
