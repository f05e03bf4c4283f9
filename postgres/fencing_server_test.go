package postgres

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// A candidate whose session is connected to the old primary ends no transaction on the
// new one, where another term of the role is valid.
func TestTransactionsOnAnotherServerAreNotTerminated(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	older, newer := pgtest.Shared(t), pgtest.Start(t, pgtest.Options{})
	schema := older.Schema(t)
	target, err := pgx.ParseConfig(newer.DSN())
	if err != nil {
		t.Fatal(err)
	}
	var failedOver atomic.Bool // new connections reach the new primary
	b := backendOn(t, older.DSN(), Config{Schema: schema, Connect: func(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
		if failedOver.Load() {
			config.Host, config.Port, config.LookupFunc = target.Host, target.Port, target.LookupFunc
		}
		return pgx.ConnectConfig(ctx, config)
	}})
	var logged logBuffer
	first, second := open(t, b), open(t, b, impatient, logTo(&logged))
	first.take("scheduler")
	holder := pgtest.Conn(t, older.DSN())
	if _, err := holder.Exec(t.Context(), b.names.SQL("BEGIN; SELECT FROM {terms} WHERE role = 'scheduler' FOR UPDATE")); err != nil {
		t.Fatal(err)
	}

	successor := backendOn(t, newer.DSN(), Config{Schema: schema})
	pool := work(t, successor)
	leader := open(t, successor)
	leader.take("scheduler")
	err = leader.write(pool, pgx.TxOptions{}, leader.mark("scheduler"), func(tx pgx.Tx) {
		if err := successor.fence(t.Context(), tx, leader.mark("scheduler")); err != nil {
			t.Fatal(err)
		}
		failedOver.Store(true)
		first.Abort()
		for start := time.Now(); !logged.contains("the next term waiting") && !logged.contains("another server than the session"); {
			if time.Since(start) > patience {
				t.Fatal("the candidate looked for transactions on another server than its session")
			}
			if attempt := second.try("scheduler")[0]; attempt.Outcome == tenure.OutcomeGranted {
				t.Fatal("the term began while a transaction held the row")
			}
			second.wait(10 * time.Millisecond)
		}
	})
	if err != nil {
		t.Errorf("a fenced transaction of the leader on the new primary: %v", err)
	}
}
