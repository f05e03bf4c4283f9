package acceptance_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// appendEntry locks the one row of the head, so that positions are in the order of
// the commits.
const appendEntry = `
WITH head AS (UPDATE ledger_head SET position = position + 1 RETURNING position)
INSERT INTO ledger (position, term, sequence) SELECT position, $1, $2 FROM head`

// ledger is a table to which leaders append, and what they saw committed.
type ledger struct {
	mu      sync.Mutex
	written map[[2]int64]bool // term and sequence
}

// append appends entries under a node's terms until the context ends.
func (l *ledger) append(ctx context.Context, pool *pgxpool.Pool, m *member) {
	for sequence := int64(1); ctx.Err() == nil; sequence++ {
		term := m.election.Term()
		if term == nil {
			select {
			case <-time.After(time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		limited, cancel := context.WithTimeout(ctx, patience)
		err := postgres.InTx(limited, pool, term, func(tx pgx.Tx) error {
			_, err := tx.Exec(limited, appendEntry, term.Number(), sequence)
			return err
		})
		cancel()
		if err == nil {
			l.mu.Lock()
			l.written[[2]int64{term.Number(), sequence}] = true
			l.mu.Unlock()
		}
	}
}

// check looks for entries that are gone, or follow those of a newer term.
func (l *ledger) check(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	rows, err := conn.Query(t.Context(), "SELECT term, sequence FROM ledger ORDER BY position")
	if err != nil {
		t.Fatal(err)
	}
	var newest int64
	for rows.Next() {
		var entry [2]int64
		if err := rows.Scan(&entry[0], &entry[1]); err != nil {
			t.Fatal(err)
		}
		if entry[0] < newest {
			t.Errorf("Invariant 3: a write of term %d committed after one of term %d", entry[0], newest)
		}
		newest = max(newest, entry[0])
		delete(l.written, entry)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for entry := range l.written {
		t.Errorf("the acknowledged write %d of term %d is gone", entry[1], entry[0])
	}
}

// The commit that begins a term waits for no disk. The server crashes within
// milliseconds of it, again and again, and often forgets the term; the leader may not
// notice the crash.
//
//	TENURE_TEST_BEGIN_CRASHES=500 go test ./internal/acceptance -run TestCrashesAtBeginKeepInvariants -v -timeout 0
func TestCrashesAtBeginKeepInvariants(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	rounds := scaled("TENURE_TEST_BEGIN_CRASHES", 10)
	chosen := *seed
	if chosen == 0 {
		chosen = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with -acceptance-seed=%d", chosen)
	random := rand.New(rand.NewPCG(chosen, 0))

	server, c := newServer(t, pgtest.Options{Durable: true})
	var members []*member
	for _, name := range []string{"one", "two", "three"} {
		members = append(members, c.joinWired(name, address(server)))
	}
	execute(t, server.Conn(t), "CREATE TABLE ledger (position bigint PRIMARY KEY, term bigint, sequence bigint)")
	execute(t, server.Conn(t), "CREATE TABLE ledger_head AS SELECT 0::bigint AS position")
	book := &ledger{written: map[[2]int64]bool{}}
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for _, m := range members {
		pool := server.Pool(t)
		writers.Go(func() { book.append(ctx, pool, m) })
	}
	defer writers.Wait()
	defer stop()

	lost, unheard := 0, 0
	leader, term := c.someoneElse(0, members...)
	for range rounds {
		crash := server.HoldLog(t)
		_ = leader.election.StepDown(t.Context()) // it may have stopped leading
		leader, term = c.someoneElse(term.Number(), members...)
		deaf := random.IntN(4) == 0
		if deaf {
			unheard++
			leader.wire.Stall()
		}
		<-time.After(time.Duration(random.Int64N(int64(3 * time.Millisecond))))
		crash()
		if row := value[int64](t, server.Conn(t), "SELECT term FROM "+c.quoted("terms")+" WHERE role = $1", role); row < term.Number() {
			lost++
		}
		before := term
		if leader, term = c.someoneElse(before.Number(), members...); deaf && before.Valid() {
			t.Errorf("Invariant 1: term %d began while the leader of term %d, which the server had forgotten, trusted it", term.Number(), before.Number())
		}
		for _, m := range members {
			m.wire.Resume()
		}
	}
	stop()
	writers.Wait()
	book.check(t, server.Conn(t))
	t.Logf("%d crashes, %d of which undid the begin of a term, %d with a leader that did not notice; %d terms", rounds, lost, unheard, len(c.checks.terms()))
}
