package postgres

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// The connection that terminates the transactions in the way opens after they have
// ended and the next term has begun. Its leader's fenced transactions stay.
func TestTransactionsOfTheNextTermAreNotTerminated(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Shared(t)
	connecting, connect := make(chan struct{}), make(chan struct{})
	openGate := sync.OnceFunc(func() { close(connect) })
	t.Cleanup(openGate)
	var once sync.Once
	b := backendOn(t, server.DSN(), Config{Schema: server.Schema(t), Connect: func(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
		if strings.HasSuffix(config.RuntimeParams["application_name"], " fence") {
			once.Do(func() { close(connecting) })
			<-connect
		}
		return pgx.ConnectConfig(ctx, config)
	}})
	pool := work(t, b)
	first, second := open(t, b), open(t, b, impatient)
	first.take("scheduler")
	stopped := first.stopFenced(pool, "scheduler", 1)
	first.Abort()
	for late, begun := false, time.Now(); !late; {
		if attempt := second.try("scheduler")[0]; attempt.Outcome == tenure.OutcomeGranted {
			t.Fatal("the term began while a fenced transaction held the row")
		}
		second.wait(10 * time.Millisecond)
		select {
		case <-connecting:
			late = true
		default:
		}
		if time.Since(begun) > patience {
			t.Fatal("no transaction was to be terminated")
		}
	}
	if err := stopped[0].Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	second.win("scheduler")

	err := second.write(pool, pgx.TxOptions{}, second.mark("scheduler"), func(tx pgx.Tx) {
		if err := b.fence(t.Context(), tx, second.mark("scheduler")); err != nil {
			t.Fatal(err)
		}
		openGate()
		second.terminator.wait()
	})
	if err != nil {
		t.Errorf("a fenced transaction of the leader: %v", err)
	}
}
