package postgres

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
)

func impatient(o *peerOptions) { o.timing.FenceTimeout = 100 * time.Millisecond }

// logBuffer keeps what is logged.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logBuffer) contains(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

func logTo(l *logBuffer) func(*peerOptions) {
	return func(o *peerOptions) { o.logger = slog.New(slog.NewTextHandler(l, nil)) }
}

// A worker that stopped in the middle of its transaction must not stop the
// election; several of them at once hold the row as a set.
func TestStoppedFencedTransactionsAreEnded(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	pool := work(t, b)
	first, second := open(t, b), open(t, b, impatient)
	led := first.take("scheduler")

	ctx := context.Background()
	var stopped []pgx.Tx
	for range 3 {
		tx, err := pool.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tx.Rollback(ctx) }) // before the pool is closed
		if err := b.fence(ctx, tx, first.mark("scheduler")); err != nil {
			t.Fatal(err)
		}
		stopped = append(stopped, tx)
	}
	bystander, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer bystander.Rollback(ctx)
	if _, err := bystander.Exec(ctx, b.names.sql("INSERT INTO {schema}.work (term) VALUES (0)")); err != nil {
		t.Fatal(err)
	}

	first.Abort()
	if next := second.win("scheduler"); next.Previous != led.Term {
		t.Errorf("term %d follows %d, want the leader's, %d", next.Term, next.Previous, led.Term)
	}
	for _, tx := range stopped {
		if err := tx.Commit(ctx); err == nil {
			t.Error("a transaction of the old term was committed after the new one began")
		}
	}
	if err := bystander.Commit(ctx); err != nil {
		t.Errorf("a bystander's transaction was ended too: %v", err)
	}
}

func TestPreparedTransactionIsNamed(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"max_prepared_transactions": "2"}})
	b := backendOn(t, server.DSN(), Config{})
	pool := work(t, b)
	log := new(logBuffer)
	first, second := open(t, b), open(t, b, impatient, logTo(log))
	first.take("scheduler")

	ctx := context.Background()
	conn := server.Conn(t)
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.fence(ctx, tx, first.mark("scheduler")); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "PREPARE TRANSACTION 'it''s mine'"); err != nil {
		t.Fatal(err)
	}

	first.Abort()
	rolledBack := false
	for deadline := time.Now().Add(patience); ; {
		attempt := second.try("scheduler")[0]
		if attempt.Outcome == tenure.Granted {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the next term never began")
		}
		second.wait(max(attempt.RetryIn, time.Millisecond))
		if !rolledBack && log.contains(`ROLLBACK PREPARED E'it''s mine'`) {
			if _, err := pool.Exec(ctx, "ROLLBACK PREPARED 'it''s mine'"); err != nil {
				t.Fatal(err)
			}
			rolledBack = true
		}
	}
	if !rolledBack {
		t.Error("the term began while the prepared transaction stood")
	}
}
