package recipes

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/postgres"
)

// installation is a database with elections and a table that leaders write.
type installation struct {
	testing.TB
	dsn  string
	pool *pgxpool.Pool
	db   *sql.DB
}

func newInstallation(t testing.TB) *installation {
	t.Helper()
	dsn := pgtest.Shared(t).Database(t)
	i := &installation{TB: t, dsn: dsn, pool: pgtest.Pool(t, dsn)}
	i.db = stdlib.OpenDBFromPool(i.pool)
	t.Cleanup(func() {
		if err := i.db.Close(); err != nil {
			t.Error(err)
		}
	})
	i.exec(`CREATE TABLE accounts (id bigserial PRIMARY KEY, name text NOT NULL)`)
	return i
}

func (i *installation) exec(statement string) {
	i.Helper()
	if _, err := i.pool.Exec(i.Context(), statement); err != nil {
		i.Fatal(err)
	}
}

// node opens a node as in a separate process.
func (i *installation) node(name string) *tenure.Node {
	i.Helper()
	backend, err := postgres.New(i.dsn, postgres.Config{})
	if err != nil {
		i.Fatal(err)
	}
	i.Cleanup(backend.Close)
	return postgrestest.OpenNode(i, backend, tenure.Config{Name: name})
}

// lead begins a term of the role "billing".
func (i *installation) lead(node *tenure.Node) *tenure.Term {
	i.Helper()
	election, err := node.Election(tenure.NamedRole("billing"))
	if err != nil {
		i.Fatal(err)
	}
	term, err := election.TryAcquire(i.Context())
	if err != nil {
		i.Fatal(err)
	}
	return term
}

// write writes a name in a transaction that is fenced by a term, and then calls then
// within it.
type write func(ctx context.Context, term *tenure.Term, name string, then func() error) error

// newWriter opens a library on a database.
type newWriter func(db *sql.DB) (write, error)

// libraries are the libraries of the recipes.
var libraries = map[string]newWriter{
	"GORM":                          gormWriter(gorm.Config{}),
	"GORM with prepared statements": gormWriter(gorm.Config{PrepareStmt: true, PrepareStmtTTL: neverEvicted}),
	"bun":                           newBunWriter,
	"sqlx":                          newSQLxWriter,
	"ent":                           newEntWriter,
}

func TestLibrariesFenceTheirTransactions(t *testing.T) {
	t.Parallel()
	for name, open := range libraries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInstallation(t)
			write, err := open(i.db)
			if err != nil {
				t.Fatal(err)
			}
			i.check(readAccounts, write)
		})
	}
}

// check checks the fence of a kind of transaction: it commits in a valid term, rolls
// back after an error, and is refused, with all that it wrote, if the next term has
// begun while it was open.
func (i *installation) check(written string, write write) {
	i.Helper()
	term := i.lead(i.node("old"))
	if err := write(i.Context(), term, "valid", func() error { return nil }); err != nil {
		i.Errorf("in a valid term: %v", err)
	}
	failed := errors.New("work failed")
	if err := write(i.Context(), term, "failed", func() error { return failed }); !errors.Is(err, failed) {
		i.Errorf("failed work: %v; want %v", err, failed)
	}
	next := i.node("new")
	err := write(i.Context(), term, "stale", func() error {
		if err := term.Resign(i.Context()); err != nil {
			return err
		}
		i.lead(next)
		return nil
	})
	if !errors.Is(err, tenure.ErrFenced) {
		i.Errorf("by a stale leader: %v; want ErrFenced", err)
	}
	if names := i.names(written); !slices.Equal(names, []string{"valid"}) {
		i.Errorf("written: %v; want only what the valid term wrote", names)
	}
}

// names reads a column of names with a query.
func (i *installation) names(query string) []string {
	i.Helper()
	rows, err := i.pool.Query(i.Context(), query)
	if err != nil {
		i.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		i.Fatal(err)
	}
	return names
}

const readAccounts = `SELECT name FROM accounts ORDER BY id`
