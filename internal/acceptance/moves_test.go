package acceptance_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/docpage"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/postgres"
)

// loop elects itself on one connection, as programs without Tenure do.
type loop struct {
	conn *pgx.Conn
	lock string // the arguments of the functions
}

func (l loop) try(t *testing.T) bool {
	t.Helper()
	return value[bool](t, l.conn, "SELECT pg_try_advisory_lock("+l.lock+")")
}

func (l loop) unlock(t *testing.T) {
	t.Helper()
	if !value[bool](t, l.conn, "SELECT pg_advisory_unlock("+l.lock+")") {
		t.Error("the loop had no lock to release")
	}
}

// mover is an election of a new instance, on a node in a separate process.
type mover struct{ *tenure.Election }

func newMover(t *testing.T, dsn string, role tenure.Role) mover {
	t.Helper()
	backend, err := postgres.New(dsn, postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(backend.Close)
	election, err := postgrestest.OpenNode(t, backend, tenure.Config{}).Election(role)
	if err != nil {
		t.Fatal(err)
	}
	return mover{election}
}

// try makes one attempt. The term is nil if the role is held.
func (m mover) try(t *testing.T) *tenure.Term {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	term, err := m.TryAcquire(ctx)
	if err != nil && !errors.Is(err, tenure.ErrHeld) {
		t.Fatal(err)
	}
	return term
}

// TestLoopsAndNodesMoveOneByOne: with the key of a loop, in each form that the pages
// on loops and on pgleaderlock name, loops and nodes exclude each other while instances
// of a program move one by one.
func TestLoopsAndNodesMoveOneByOne(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	hash := value[int64](t, pgtest.Conn(t, dsn), "SELECT hashtext('billing')")
	for name, form := range map[string]struct {
		lock string
		role tenure.Role
	}{
		"one key":         {"42", tenure.NamedRole("billing").WithKey(42)},
		"a pair":          {"1, 100", tenure.KeyPairRole(1, 100)},
		"hash of a name":  {"hashtext('billing')", tenure.NamedRole("hashed").WithKey(hash)},
		"a negative pair": {"-1, -100", tenure.KeyPairRole(-1, -100)},
		"FORGE":           {"77306496745473", tenure.NamedRole("scheduler").WithKey(0x464F52470001)},
		"Crablet, outbox": {"4856221667890123456", tenure.NamedRole("outbox").WithKey(4856221667890123456)},
		"Crablet, views":  {"4856221667890123457", tenure.NamedRole("views").WithKey(4856221667890123457)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := loop{pgtest.Conn(t, dsn), form.lock}, loop{pgtest.Conn(t, dsn), form.lock}
			moved := newMover(t, dsn, form.role)
			if !first.try(t) || second.try(t) {
				t.Fatal("the loops do not elect one of them")
			}
			if term := moved.try(t); term != nil {
				t.Fatalf("term %d began beside a loop", term.Number())
			}
			first.unlock(t)
			term := moved.try(t)
			if term == nil {
				t.Fatal("the node does not lead after the loop")
			}
			if second.try(t) {
				t.Fatalf("a loop leads beside term %d", term.Number())
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := term.Resign(ctx); err != nil {
				t.Fatal(err)
			}
			if !second.try(t) {
				t.Error("a loop does not lead after the node")
			}
		})
	}
}

// TestLoopWithoutKeyIsNotExcluded: a role by name alone has its own key, and a pair is
// not the number made of it.
func TestLoopWithoutKeyIsNotExcluded(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	conn := pgtest.Conn(t, dsn)
	for _, lock := range []string{"42", "hashtext('billing')", "1, 100"} {
		if !(loop{conn, lock}).try(t) {
			t.Fatalf("the lock %s is held", lock)
		}
	}
	for _, role := range []tenure.Role{tenure.NamedRole("billing"), tenure.KeyRole(4294967396)} {
		if newMover(t, dsn, role).try(t) == nil {
			t.Errorf("%v is held by a loop", role)
		}
	}
}

// sqlBlocks returns the blocks of SQL on a page.
func sqlBlocks(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, block := range docpage.Blocks(string(text)) {
		if block.Language == "sql" {
			found = append(found, block.Text)
		}
	}
	return found
}

// The statements of ShedLock on PostgreSQL with usingDbTime(), as its documentation and
// its class for PostgreSQL have them.
const (
	shedTable = `CREATE TABLE shedlock (
	name VARCHAR(64) NOT NULL, lock_until TIMESTAMP NOT NULL, locked_at TIMESTAMP NOT NULL,
	locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name))`
	shedLock = `
INSERT INTO shedlock (name, lock_until, locked_at, locked_by)
VALUES ($1, timezone('utc', CURRENT_TIMESTAMP) + cast($2 AS interval), timezone('utc', CURRENT_TIMESTAMP), $3)
ON CONFLICT (name) DO UPDATE SET lock_until = timezone('utc', CURRENT_TIMESTAMP) + cast($2 AS interval),
	locked_at = timezone('utc', CURRENT_TIMESTAMP), locked_by = $3
WHERE shedlock.name = $1 AND shedlock.lock_until <= timezone('utc', CURRENT_TIMESTAMP)`
	shedUnlock = `
UPDATE shedlock SET lock_until = timezone('utc', CURRENT_TIMESTAMP) WHERE name = $1 AND locked_by = $2`
)

// TestShedLockAndItsPageExcludeEachOther runs the statements of the page beside those of
// ShedLock, on a connection in another time zone.
func TestShedLockAndItsPageExcludeEachOther(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	old, conn := pgtest.Conn(t, dsn), pgtest.Conn(t, dsn)
	execute(t, old, shedTable)
	execute(t, conn, "SET TimeZone = 'Asia/Tokyo'")
	blocks := sqlBlocks(t, "coming-from/shedlock.md")
	if len(blocks) != 3 || !strings.HasPrefix(blocks[0], "SELECT ") || !strings.HasPrefix(blocks[1], "INSERT ") || !strings.HasPrefix(blocks[2], "UPDATE ") {
		t.Fatalf("the page has the statements %q", blocks)
	}
	rows := func(c *pgx.Conn, sql string, args ...any) int64 {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		tag, err := c.Exec(ctx, sql, args...)
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return tag.RowsAffected()
	}
	expect := func(what string, got, want int64) {
		t.Helper()
		if got != want {
			t.Fatalf("%s: %d rows, want %d", what, got, want)
		}
	}
	lock := func(forAtMost time.Duration) int64 {
		t.Helper()
		return rows(old, shedLock, "nightly", forAtMost.String(), "old-1")
	}
	expect("ShedLock locks the free row", lock(time.Hour), 1)
	expect("the page's query shows the lock", rows(conn, blocks[0]), 1)
	expect("the new job begins beside ShedLock", rows(conn, blocks[1]), 0)
	expect("the new job ends what it has not begun", rows(conn, blocks[2]), 0)
	expect("ShedLock unlocks", rows(old, shedUnlock, "nightly", "old-1"), 1)
	expect("the page's query shows no lock", rows(conn, blocks[0]), 0)
	expect("the new job begins", rows(conn, blocks[1]), 1)
	expect("ShedLock locks beside the new job", lock(time.Hour), 0)
	expect("the new job begins twice", rows(conn, blocks[1]), 0)
	expect("the new job ends", rows(conn, blocks[2]), 1)
	expect("ShedLock locks after the new job", lock(0), 1)
	expect("the new job begins after lockAtMostFor", rows(conn, blocks[1]), 1)
}
