package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres/internal/sqlstate"
)

// The connection for reads is closed when it is idle, and opened again for the
// next read.
func TestReaderClosesIdleConnection(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	b := newBackend(t)
	open(t, b)
	b.reader.Idle = 100 * time.Millisecond
	ask := func() {
		if _, err := b.Leaders(context.Background()); err != nil {
			t.Error(err)
		}
	}
	for range 3 {
		ask()
		var pid uint32
		err := b.reader.Ask(context.Background(), "read", func(_ context.Context, conn *pgx.Conn) error {
			pid = conn.PgConn().PID()
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, b, "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)", pid)
	}

	// A connection is not closed during a read.
	b.reader.Idle = time.Nanosecond
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 50 {
				ask()
			}
		})
	}
	group.Wait()
	b.reader.Close()
	if _, err := b.Leaders(context.Background()); err == nil {
		t.Error("a closed reader answers")
	}
}

// An error that already describes the failure is not described a second time.
func TestReaderDoesNotRepeatErrorText(t *testing.T) {
	t.Parallel()
	b := new(Backend)
	refused := &pgconn.PgError{Code: sqlstate.InsufficientPrivilege, Message: "permission denied"}
	for _, err := range []error{refused, fmt.Errorf("%w: GRANT SELECT: %w", dberr.ErrPrivilege, refused)} {
		answer := b.names.Explain("read", err)
		if !errors.Is(answer, dberr.ErrPrivilege) || strings.Count(answer.Error(), dberr.ErrPrivilege.Error()) != 1 {
			t.Errorf("%v", answer)
		}
	}
	if err := b.names.Explain("read", errors.New("cut")); !errors.Is(err, tenure.ErrConnection) {
		t.Errorf("%v", err)
	}
}
