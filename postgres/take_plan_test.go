package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/pgtest"
)

var (
	noTexts   = []string{}
	noNumbers = []int64{}
	noTimes   = []time.Time{}
)

// The plan is made when a session opens and kept. With a scan of the table, or a join of
// each row with each wanted role, the begin of a thousand terms would take seconds.
func TestTakeReadsRowsByKeyAfterTheTableHasGrown(t *testing.T) {
	t.Parallel()
	const wanted, others = 200, 5000
	ctx, b := t.Context(), newBackend(t)
	open(t, b).take("first") // one row
	exec(t, b, "VACUUM ANALYZE {terms}")
	conn := pgtest.Conn(t, b.connect.Config.ConnString())
	take := func(roles []string, keys []int64, examined bool) {
		t.Helper()
		_, err := conn.Exec(ctx, b.names.SQL(sessionStatements[stmtTake]), roles, keys, noPairs, noPairs, noNumbers, noPairs,
			uuid.New(), []string{"other"}, 1, 1000, "lineage", "epoch", examined, true, false, noPairs, noTimes, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	take(noTexts, noNumbers, false)
	take(noTexts, noNumbers, true)

	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx)
	// Set by hand: 5,200 terms would take the server minutes.
	const addRoles = "INSERT INTO {terms} (role, lock_key) SELECT 'role-' || i, 1000000 + i FROM generate_series(0, $1::int - 1) i"
	if _, err := tx.Exec(ctx, b.names.SQL(addRoles), wanted+others); err != nil {
		t.Fatal(err)
	}
	roles, keys := make([]string, wanted), make([]int64, wanted)
	for i := range wanted {
		roles[i], keys[i] = fmt.Sprintf("role-%d", i), 1000000+int64(i)
	}
	take(roles, keys, false)
	var begun, read int
	if err := tx.QueryRow(ctx, b.names.SQL("SELECT count(*) FROM {terms} WHERE node_name = 'other'")).Scan(&begun); err != nil {
		t.Fatal(err)
	}
	const rowsRead = "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables WHERE relid = {terms:regclass}"
	if err := tx.QueryRow(ctx, b.names.SQL(rowsRead)).Scan(&read); err != nil {
		t.Fatal(err)
	}
	read -= wanted + others + 1 // by the count above
	if begun != wanted || read > 5*wanted {
		t.Errorf("%d terms began, and %d rows were read; want %d terms and at most %d rows", begun, read, wanted, 5*wanted)
	}
}
